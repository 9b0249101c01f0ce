#include "engine/precision/communication_dtype.h"

#include <algorithm>
#include <set>

#include "engine/precision/module_classes.h"

namespace zeroproof {
namespace {

using TensorSet = std::set<const TensorImpl*>;

// The parameters that modules of the safe classes own directly.
TensorSet safe_tensors(nn::Module& root, const TorchAutocastConfig& autocast) {
  const auto& given = autocast.lower_precision_safe_modules;
  const std::vector<std::string>& safe = given ? *given : default_safe_classes();
  TensorSet tensors;
  for (const nn::NamedModule& named : root.named_modules()) {
    const bool is_safe = std::ranges::find(safe, module_class(*named.module)) != safe.end();
    if (!is_safe) continue;
    for (const Tensor* parameter : named.module->own_parameters()) {
      tensors.insert(&parameter->impl());
    }
  }
  return tensors;
}

}  // namespace

void set_communication_dtypes(nn::Module& root, const ZeroConfig& config,
                              ZeroParameters& parameters) {
  if (!config.torch_autocast.enabled) {
    for (ZeroParameter& parameter : parameters)
      parameter.communication_dtype = config.communication_dtype();
    return;
  }
  const TensorSet safe = safe_tensors(root, config.torch_autocast);
  for (ZeroParameter& parameter : parameters) {
    const bool is_safe = safe.contains(&parameter.tensor.impl());
    parameter.communication_dtype =
        is_safe ? config.torch_autocast.dtype : parameter.tensor.dtype();
  }
}

}  // namespace zeroproof
