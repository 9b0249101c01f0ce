#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/model/nn/module.h"

namespace zeroproof {

// The qualified name of a module's exact class, as ds_config.json writes it: "torch.nn.Linear"; a
// class that PyTorch lacks is "zeroproof.nn.Mixture". Empty for classes made elsewhere. Static.
std::string_view module_class(const nn::Module& module);

// Names that /torch_autocast/lower_precision_safe_modules may have; those of classes that no
// module here has match no module. Static.
std::span<const std::string_view> importable_classes();
bool is_importable_class(std::string_view name);

// What is safe when the configuration does not say: Linear and the convolutions (docs/spec/zero.md
// 6.1).
const std::vector<std::string>& default_safe_classes();

}  // namespace zeroproof
