#include "props/train/misuse.h"

#include "zeroproof/engine/engine_error.h"

namespace zeroproof::train {
namespace {

// In the block that an engine of the case has.
std::function<void()> in_block(Engine& engine, const CaseSpec& spec, std::function<void()> body) {
  const bool has_no_sync = spec.stage < 2 && spec.is_unmanaged == 0;
  return [&engine, has_no_sync, body = std::move(body)] {
    has_no_sync ? engine.no_sync(body) : engine.coalesce_grad_reduction(body);
  };
}

// Whether it has both blocks, and one more reduces nothing that would wait for a boundary.
bool has_other_block(const CaseSpec& spec) {
  return spec.stage == 1 && spec.is_unmanaged == 0 && spec.accumulation == 1;
}

bool refuses_step(Engine& engine, const CaseSpec& spec) {
  const auto step = [&] { engine.step(); };
  const auto in_other = [&] { engine.coalesce_grad_reduction(step); };
  return is_refused_with(EngineErrorId::step_inside_no_sync, in_block(engine, spec, step)) &&
         (!has_other_block(spec) || is_refused_with(EngineErrorId::step_inside_no_sync, in_other));
}

bool refuses_no_sync(Engine& engine, const CaseSpec& spec) {
  const auto inner = [&] { engine.no_sync([] {}); };
  if (spec.stage >= 2) return is_refused_with(EngineErrorId::no_sync_not_allowed, inner);
  const auto in_other = [&] { engine.coalesce_grad_reduction(inner); };
  return is_refused_with(EngineErrorId::no_sync_not_allowed, [&] { engine.no_sync(inner); }) &&
         (!has_other_block(spec) || is_refused_with(EngineErrorId::no_sync_not_allowed, in_other));
}

bool refuses_coalesce(Engine& engine, const CaseSpec& spec) {
  const auto inner = [&] { engine.coalesce_grad_reduction([] {}); };
  if (spec.stage == 0 || spec.is_unmanaged != 0)
    return is_refused_with(EngineErrorId::coalesce_not_allowed, inner);
  return is_refused_with(EngineErrorId::coalesce_not_allowed, in_block(engine, spec, inner));
}

bool refuses_vector(Engine& engine, const CaseSpec& spec) {
  const auto vector = [&] {
    Tensor loss = Tensor::full({2}, 1.0, model_dtype(static_cast<Precision>(spec.precision)));
    loss.set_requires_grad(true);
    return loss;
  };
  const auto no_graph = [&] {
    return Tensor::full({}, 1.0, model_dtype(static_cast<Precision>(spec.precision)));
  };
  return is_refused_with(EngineErrorId::backward_of_invalid_loss,
                         [&] { engine.backward(vector()); }) &&
         is_refused_with(EngineErrorId::backward_of_invalid_loss,
                         [&] { engine.backward(no_graph()); }) &&
         is_refused_with(EngineErrorId::backward_of_invalid_loss,
                         [&] { engine.backward(Tensor()); }) &&
         (!engine.needs_scaler() ||
          (is_refused_with(EngineErrorId::scale_of_invalid_loss, [&] { engine.scale(vector()); }) &&
           is_refused_with(EngineErrorId::scale_of_invalid_loss,
                           [&] { engine.scale(no_graph()); }) &&
           is_refused_with(EngineErrorId::scale_of_invalid_loss, [&] { engine.scale(Tensor()); })));
}

// On every rank, as whoever calls `module.to(device)` there.
bool refuses_moved_weight(Engine& engine) {
  TensorList weights;
  for (const nn::NamedParameter& named : engine.module().named_parameters())
    if (weights.empty()) weights.push_back(named.tensor);
  return is_refused_with(EngineErrorId::gathered_parameter_left_device, [&] {
    engine.gathered_parameters(weights, 0, [&] {
      const Tensor& weight = weights.front();
      const Device away = weight.device().is_cpu() ? Device::cuda(0) : Device::cpu();
      weight.set_data(weight.detach().on(away));
    });
  });
}

// The same one again is none, where it is the user's already.
bool refuses_late_loss_scale(Engine& engine, const CaseSpec& spec) {
  const double before = engine.loss_scale();
  const bool is_refused = !engine.override_loss_scale(2.0 * before);
  if (spec.owns_scale != 1) return is_refused;
  return is_refused && engine.override_loss_scale(before) && engine.loss_scale() == before;
}

bool refuses_capture(Engine& engine) {
  bool has_run = false;
  const auto captured = engine.capture([&] { has_run = true; });
  return !captured && !has_run;
}

}  // namespace

bool is_refused_with(EngineErrorId id, const std::function<void()>& call) {
  try {
    call();
  } catch (const EngineError& error) {
    return error.id() == id;
  }
  return false;
}

bool is_refused(Engine& engine, const CaseSpec& spec, Misuse misuse,
                const std::function<void()>& differentiate_unscaled) {
  switch (misuse) {
    case Misuse::step_in_block:
      return refuses_step(engine, spec);
    case Misuse::no_sync:
      return refuses_no_sync(engine, spec);
    case Misuse::coalesce:
      return refuses_coalesce(engine, spec);
    case Misuse::loss_of_vector:
      return refuses_vector(engine, spec);
    case Misuse::set_boundary:
      return is_refused_with(EngineErrorId::boundary_set_in_unmanaged_accumulation,
                             [&] { engine.set_gradient_accumulation_boundary(true); }) &&
             is_refused_with(EngineErrorId::boundary_set_in_unmanaged_accumulation,
                             [&] { engine.set_gradient_accumulation_boundary(false); });
    case Misuse::unscaled_manual:
      return is_refused_with(EngineErrorId::backward_without_loss_scaling, differentiate_unscaled);
    case Misuse::unscaled_again:
      return refuses_vector(engine, spec) &&
             is_refused_with(EngineErrorId::backward_without_loss_scaling, differentiate_unscaled);
    case Misuse::manual_backward:
      return is_refused_with(EngineErrorId::manual_backward_unsupported, differentiate_unscaled);
    case Misuse::loss_scale:
      return !engine.override_loss_scale(0.0);
    case Misuse::late_loss_scale:
      return refuses_late_loss_scale(engine, spec);
    case Misuse::moved_weight:
      return refuses_moved_weight(engine);
    case Misuse::capture:
      return refuses_capture(engine);
    case Misuse::unfed_leaf:  // by the program: their forwards are others
    case Misuse::unscaled_second:
    case Misuse::past_manual:
    case Misuse::others_loss:
    case Misuse::none:
      break;
  }
  return true;
}

bool refuses_loss_scale(EngineTarget& engines, double loss_scale) {
  std::string refusal;
  for (std::size_t i = 0; i < engines.engines(); ++i) {
    Engine& engine = engines.engine(i);
    const double before = engine.loss_scale();
    const auto set = engine.override_loss_scale(loss_scale);
    if (set || engine.loss_scale() != before) return false;
    refusal = set.error().text;
  }
  return engines.refusal_of_another(engines.engine(0).config(), loss_scale) == refusal;
}

}  // namespace zeroproof::train
