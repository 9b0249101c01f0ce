#include "props/train/step_settings.h"

#include <cmath>

#include "props/train/engine_target.h"
#include "props/train/window_records.h"

namespace zeroproof::train {
namespace {

bool is_last(const CaseSpec& spec, std::size_t micro) {
  return micro + 1 == static_cast<std::size_t>(spec.accumulation);
}

// The exponents take turns.
void override_loss_scales(const CaseSpec& spec, Pass& pass, int even, int odd) {
  const double scale = std::ldexp(1.0, pass.step_number() % 2 == 0 ? even : odd);
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec.engines); ++engine)
    pass.target().override_loss_scale(engine, scale);
}

}  // namespace

void set_loss_scale(const CaseSpec& spec, Pass& pass) {
  if (spec.owns_scale == 1) override_loss_scales(spec, pass, 4, 2);
  if (spec.owns_scale == 3 && pass.step_number() == 0) override_loss_scales(spec, pass, 3, 3);
}

void change_loss_scale(const CaseSpec& spec, Pass& pass) {
  override_loss_scales(spec, pass, 2, 4);
}

// An engine keeps what was said once; the baseline has a target a window.
void set_boundary(const CaseSpec& spec, Pass& pass, std::size_t micro) {
  if (spec.sets_boundary == 0) return;
  const bool is_engine = dynamic_cast<EngineTarget*>(&pass.target()) != nullptr;
  if (spec.sets_boundary == 3 && is_engine && pass.step_number() > 0) return;
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec.engines); ++engine)
    pass.target().set_boundary(engine, is_last(spec, micro));
}

void record_boundary(const CaseSpec& spec, Pass& pass, std::size_t micro) {
  bool is_boundary = spec.is_unmanaged == 0 && is_last(spec, micro);
  if (auto* const engines = dynamic_cast<EngineTarget*>(&pass.target()))
    is_boundary = engines->engine(0).is_gradient_accumulation_boundary();
  record_number(pass, "boundary", is_boundary ? 1.0 : 0.0);
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec.engines); ++engine)
    record_number(pass, "needs scaler", pass.target().needs_scaler(engine) ? 1.0 : 0.0);
}

void record_boundary_behind(const CaseSpec& spec, Pass& pass, std::size_t micro) {
  if (spec.sets_boundary != 0) return;
  const auto accumulation = static_cast<std::size_t>(spec.accumulation);
  bool is_boundary = spec.is_unmanaged == 0 && is_last(spec, (micro + 1) % accumulation);
  if (auto* const engines = dynamic_cast<EngineTarget*>(&pass.target()))
    is_boundary = engines->engine(0).is_gradient_accumulation_boundary();
  record_number(pass, "boundary behind a step", is_boundary ? 1.0 : 0.0);
}

}  // namespace zeroproof::train
