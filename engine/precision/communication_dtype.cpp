#include "engine/precision/communication_dtype.h"

#include <algorithm>
#include <set>

#include "engine/precision/module_classes.h"

namespace zeroproof {
namespace {

using TensorSet = std::set<const TensorImpl*>;

// The parameters that modules of the safe classes own directly.
TensorSet safe_tensors(nn::Module& root, const TorchAutocastConfig& autocast, Departure planted) {
  const auto& given = autocast.lower_precision_safe_modules;
  const bool is_unset = planted == "S32"_bug && given && given->empty();  // as good as none
  const std::vector<std::string>& safe = given && !is_unset ? *given : default_safe_classes();
  TensorSet tensors;
  for (const nn::NamedModule& named : root.named_modules()) {
    const bool is_safe = std::ranges::find(safe, module_class(*named.module)) != safe.end();
    if (!is_safe && planted == "R58"_bug)  // whoever owns it last
      for (const Tensor* parameter : named.module->own_parameters())
        tensors.erase(&parameter->impl());
    if (!is_safe) continue;
    for (const Tensor* parameter : named.module->own_parameters()) {
      tensors.insert(&parameter->impl());
    }
    if (planted == "Q54"_bug)  // and what is below them
      for (const nn::NamedParameter& each : named.module->named_parameters())
        tensors.insert(&each.tensor.impl());
  }
  return tensors;
}

}  // namespace

void set_communication_dtypes(nn::Module& root, const ZeroConfig& config,
                              ZeroParameters& parameters, Departure planted) {
  if (!config.torch_autocast.enabled) {
    for (ZeroParameter& parameter : parameters) {
      const bool is_models = planted == "S52"_bug && config.stage == 3;  // partitions as they are
      parameter.communication_dtype =
          is_models ? config.model_dtype() : config.communication_dtype();
      if (planted == "U27"_bug && config.bf16.enabled && !config.communication_data_type)
        parameter.communication_dtype = DType::float16;  // what half precision travels as
    }
    return;
  }
  const TensorSet safe = safe_tensors(root, config.torch_autocast, planted);
  for (ZeroParameter& parameter : parameters) {
    const bool is_safe = safe.contains(&parameter.tensor.impl());
    parameter.communication_dtype =
        is_safe ? config.torch_autocast.dtype : parameter.tensor.dtype();
    if (planted == "R27"_bug && config.communication_data_type)  // for all of them
      parameter.communication_dtype = *config.communication_data_type;
  }
}

}  // namespace zeroproof
