#include "props/train/generated_program.h"

#include <algorithm>
#include <memory>

#include "props/train/generated_window.h"
#include "props/train/kept_files.h"

namespace zeroproof::train {
namespace {

void generated_window(Pass& pass) {
  GeneratedWindow(*pass.scenario().spec, pass).run();
}

}  // namespace

TrainScenario scenario_of(const CaseSpec& spec) {
  TrainScenario scenario;
  scenario.name = "generated";
  scenario.summary = "a generated case";
  scenario.window = generated_window;
  const auto engines = static_cast<std::size_t>(spec.engines);
  scenario.models.assign(engines, ModelKind::generated);
  scenario.truth.assign(engines, ModelKind::generated_truth);
  scenario.spec = &spec;
  const auto restores = [](const MicroSpec& micro) {
    const auto detour = static_cast<Detour>(micro.detour);
    return micro.restores != 0 || static_cast<Interrupt>(micro.interrupt) == Interrupt::save ||
           detour == Detour::save || detour == Detour::load;
  };
  if (spec.first_ranks + spec.grown != 0 || std::ranges::any_of(spec.micros, restores))
    scenario.files = std::make_shared<KeptFiles>();
  scenario.accumulation_steps = spec.accumulation;
  scenario.is_managed = spec.is_unmanaged == 0;
  scenario.skips_frames = spec.skips_frames != 0;
  if (spec.experts != 0 && static_cast<LeafBy>(spec.leaf_by) == LeafBy::call)
    scenario.leaf_module = GeneratedModel::kExperts;
  scenario.is_offloaded = spec.is_offloaded != 0;
  scenario.has_ranks_apart = spec.has_ranks_apart != 0;
  if (spec.owns_scale == 2) scenario.custom_loss_scale = CaseSpec::kCustomLossScale;
  scenario.parameter_groups = static_cast<std::size_t>(spec.groups);
  scenario.forwards = spec.forwards();
  scenario.uses = spec.uses();
  return scenario;
}

}  // namespace zeroproof::train
