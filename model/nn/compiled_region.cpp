#include "model/nn/compiled_region.h"

#include <utility>

#include "model/custom_function.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::nn {
namespace {

// Aliases of all tensors: constant ones stay constant.
TensorList pass_on(FunctionContext& ctx, const TensorList& tensors) {
  TensorList constant;
  for (const Tensor& tensor : tensors)
    if (!tensor.is_defined() || !tensor.requires_grad()) constant.push_back(tensor);
  ctx.mark_non_differentiable(std::move(constant));
  ctx.set_materialize_grads(false);
  return tensors;
}

// `grads` are those of the parameters, then those of the inputs.
TensorList reduced(const RegionOperations& operations, const TensorList& parameters,
                   TensorList grads) {
  if (!operations.reduce) return grads;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (grads[i].is_defined()) grads[i] = operations.reduce(parameters[i], grads[i]);
  return grads;
}

// Gathers ahead of a module; its node is the last of the module in backward, so it releases.
TensorList gather_ahead(Autograd& ag, const RegionOperations& operations,
                        const TensorList& parameters, const TensorList& all) {
  const CustomFunction function = {
      .name = "AllgatherParamBackward",
      .forward =
          [&](FunctionContext& ctx, const TensorList& tensors) {
            operations.gather(parameters);
            return pass_on(ctx, tensors);
          },
      .backward =
          [operations, parameters](FunctionContext&, const TensorList& grads) {
            TensorList kept = reduced(operations, parameters, grads);
            operations.release(parameters);
            return kept;
          }};
  return apply_function(ag, function, all);
}

// The same after it, the other way round.
TensorList release_behind(Autograd& ag, const RegionOperations& operations,
                          const TensorList& parameters, const TensorList& outputs) {
  const CustomFunction function = {
      .name = "ReleaseParamBackward",
      .forward =
          [&](FunctionContext& ctx, const TensorList& tensors) {
            operations.release(parameters);
            return pass_on(ctx, tensors);
          },
      .backward =
          [operations, parameters](FunctionContext&, const TensorList& grads) {
            operations.gather(parameters);
            return grads;
          }};
  return apply_function(ag, function, outputs);
}

// Tensors in the places of others for a while.
class Substitution {
 public:
  Substitution(std::vector<Tensor*> places, const TensorList& tensors)
      : places_(std::move(places)) {
    for (std::size_t i = 0; i < places_.size(); ++i)
      before_.push_back(std::exchange(*places_[i], tensors[i]));
  }
  ~Substitution() {
    for (std::size_t i = 0; i < places_.size(); ++i) *places_[i] = std::move(before_[i]);
  }
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  std::vector<Tensor*> places_;
  TensorList before_;
};

TensorList run_compiled(Autograd& ag, const RegionOperations& operations,
                        const std::vector<Tensor*>& places, const TensorList& inputs,
                        const Module::Forward& forward) {
  TensorList parameters;
  for (const Tensor* place : places) parameters.push_back(*place);
  TensorList all = parameters;
  all.insert(all.end(), inputs.begin(), inputs.end());
  const TensorList gathered = gather_ahead(ag, operations, parameters, all);
  const auto first_input = gathered.begin() + std::ssize(parameters);
  TensorList outputs;
  {
    const Substitution in_use(places, {gathered.begin(), first_input});
    outputs = forward({first_input, gathered.end()});
  }
  return release_behind(ag, operations, parameters, outputs);
}

}  // namespace

CompiledRegion::CompiledRegion(Module& module, RegionOperations operations) : module_(module) {
  const auto shared = std::make_shared<const RegionOperations>(std::move(operations));
  for (const NamedModule& part : module.named_modules()) {
    part.module->remove_hooks();
    const std::vector<Tensor*> places = part.module->own_parameters();
    if (places.empty()) continue;
    part.module->set_compiled_call(
        [shared, places, is_skipped = is_skipped_](Autograd& ag, const TensorList& inputs,
                                                   const Module::Forward& forward) {
          return *is_skipped ? forward(inputs) : run_compiled(ag, *shared, places, inputs, forward);
        });
  }
}

CompiledRegion::~CompiledRegion() {
  for (const NamedModule& part : module_.named_modules()) part.module->set_compiled_call({});
}

}  // namespace zeroproof::nn
