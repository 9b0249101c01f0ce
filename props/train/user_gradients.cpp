#include "props/train/user_gradients.h"

#include "props/train/engine_target.h"
#include "props/train/window_records.h"

namespace zeroproof::train {

void clear_gradients(const CaseSpec& spec, Pass& pass) {
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec.engines); ++engine)
    pass.target().zero_grad(engine);
}

void litter_gradients(const CaseSpec& spec, Pass& pass) {
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec.engines); ++engine)
    for (const nn::NamedParameter& named : pass.target().module(engine).named_parameters())
      if (named.tensor.requires_grad())
        named.tensor.set_grad(Tensor::full(named.tensor.sizes(), 1.0, named.tensor.dtype()));
  clear_gradients(spec, pass);
}

void record_left_out(const CaseSpec& spec, Pass& pass) {
  if (!leaves_out(spec)) return;
  auto* const engines = dynamic_cast<EngineTarget*>(&pass.target());
  int left = 0;
  for (std::size_t engine = 0; engines && engine < static_cast<std::size_t>(spec.engines); ++engine)
    for (const nn::NamedParameter& named : engines->module(engine).named_parameters())
      left += is_left_out(spec, named.name) && named.tensor.grad().is_defined() ? 1 : 0;
  record_number(pass, "gradients of no group", left);
}

void forget_left_out(const CaseSpec& spec, Pass& pass) {
  auto* const engines = dynamic_cast<EngineTarget*>(&pass.target());
  if (!engines || !leaves_out(spec)) return;
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec.engines); ++engine)
    for (const nn::NamedParameter& named : engines->module(engine).named_parameters())
      if (is_left_out(spec, named.name)) named.tensor.set_grad({});
}

}  // namespace zeroproof::train
