#include "props/train/user_calls.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/autocast/autocast.h"
#include "props/train/baseline_target.h"
#include "props/train/engine_target.h"
#include "props/train/generated_model.h"
#include "props/train/window_records.h"

namespace zeroproof::train {
namespace {

bool are_equal(const std::vector<FullTensor>& first, const std::vector<FullTensor>& second) {
  bool is_equal = first.size() == second.size();
  for (std::size_t i = 0; is_equal && i < first.size(); ++i)
    is_equal = first[i].name == second[i].name &&
               std::ranges::equal(first[i].values, second[i].values, [](double a, double b) {
                 return a == b || (std::isnan(a) && std::isnan(b));
               });
  return is_equal;
}

// Of what is trained and has elements, by name.
std::vector<FullTensor> gradients_of(Pass& pass, std::size_t engine) {
  std::vector<FullTensor> gradients;
  if (const auto* const baseline = dynamic_cast<BaselineTarget*>(&pass.target()))
    gradients = baseline->local_gradients(engine);
  else if (auto* const engines = dynamic_cast<EngineTarget*>(&pass.target()))
    gradients = engines->engine(engine).full_gradients();
  std::erase_if(gradients, [](const FullTensor& gradient) { return gradient.values.empty(); });
  std::ranges::sort(gradients, {}, &FullTensor::name);
  return gradients;
}

// Not that of the engine's own autocast region.
DType other_dtype(const CaseSpec& spec) {
  const bool is_bf16 =
      static_cast<Precision>(spec.precision) == Precision::autocast && spec.has_grad_scaler == 0;
  return is_bf16 ? DType::float16 : DType::bfloat16;
}

}  // namespace

TensorList surrounded_forward(const CaseSpec& spec, const MicroSpec& micro, Pass& pass,
                              const TensorList& inputs) {
  Autograd& autograd = pass.autograd();
  const auto body = [&target = pass.target(), &autograd, autocasts = micro.autocasts,
                     dtype = other_dtype(spec)](const TensorList& given) {
    std::optional<Autocast> region;
    const AutocastOptions options{.is_enabled = true, .dtype = dtype};
    if (autocasts != 0) region.emplace(autograd, given.front().device().type(), options);
    return target.forward(0, given);
  };
  const auto wrap = static_cast<Wrap>(micro.wrapped);
  if (wrap == Wrap::none) return body(inputs);
  return checkpoint(autograd, kind_of(wrap), body, inputs);
}

bool skips_here(const MicroSpec& micro, Pass& pass) {
  return micro.skips_on == 0 || micro.skips_on == pass.target().rank() + 1;
}

bool leaves_unread(const MicroSpec& micro, Pass& pass) {
  const int rank = pass.target().rank() + 1;
  return micro.unread != 0 && (micro.unread_on == 0 || micro.unread_on == rank);
}

bool is_rank_of_world(const CaseSpec& spec, Pass& pass, int rank) {
  const int tensor_rank = pass.target().tensor_rank();
  return rank / spec.tensor == pass.target().rank() &&
         (tensor_rank < 0 || rank % spec.tensor == tensor_rank);
}

void record_masters(Pass& pass) {
  for (const FullTensor& master : pass.target().masters(0))
    pass.target().record("master " + master.name,
                         Tensor::of(master.values, master.sizes, DType::float32));
  if (auto* const engines = dynamic_cast<EngineTarget*>(&pass.target()))
    engines->engine(0).full_optimizer_state();
}

void ask_for_gradients(const CaseSpec& spec, Pass& pass, bool is_known) {
  bool is_same = true;
  auto* const engines = dynamic_cast<EngineTarget*>(&pass.target());
  for (std::size_t i = 0; engines && i < static_cast<std::size_t>(spec.engines); ++i) {
    const std::vector<FullTensor> first = engines->engine(i).full_gradients();
    is_same = are_equal(first, engines->engine(i).full_gradients()) && is_same;
  }
  record_number(pass, "gradients asked for twice are the same", is_same ? 1.0 : 0.0);
  for (std::size_t i = 0; is_known && i < static_cast<std::size_t>(spec.engines); ++i)
    for (const FullTensor& gradient : gradients_of(pass, i))
      pass.target().record("gradient " + engine_prefix(i) + gradient.name,
                           Tensor::of(gradient.values, gradient.sizes, DType::float32));
}

}  // namespace zeroproof::train
