#include "props/train/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/nearest_name.h"
#include "props/train/programs.h"
#include "props/train/transform_watch.h"

namespace zeroproof::train {
namespace {

using Kind = ModelKind;

std::vector<TrainScenario> accumulation_scenarios() {
  return {
      {.name = "two_losses",
       .summary = "two losses of one forward, the first backward keeps the graph",
       .window = two_losses_window,
       .models = {Kind::two_losses},
       .uses = 2},
      {.name = "fwd_fwd_bwd_bwd",
       .summary = "two forwards, then their backwards, then one step",
       .window = two_forwards_window,
       .forwards = 2},
      {.name = "gas1", .summary = "a window of one micro-batch", .window = one_pass_window},
      {.name = "gas2",
       .summary = "a window of two micro-batches",
       .window = two_passes_window,
       .accumulation_steps = 2,
       .forwards = 2},
      {.name = "gas4",
       .summary = "a window of four micro-batches",
       .window = four_passes_window,
       .accumulation_steps = 4,
       .forwards = 4},
      {.name = "unmanaged",
       .summary = "managed_gradient_accumulation off: two backwards, then step",
       .window = unmanaged_window,
       .accumulation_steps = 2,
       .is_managed = false,
       .forwards = 2},
      {.name = "coalesced",
       .summary = "two backwards inside coalesce_grad_reduction",
       .window = coalesced_window,
       .forwards = 2},
      {.name = "offload",
       .summary = "optimizer state and accumulators on the CPU; two heads that take turns (H21)",
       .window = alternating_window,
       .models = {Kind::two_losses},
       .accumulation_steps = 2,
       .is_offloaded = true,
       .forwards = 2,
       .uses = 2},
  };
}

std::vector<TrainScenario> model_scenarios() {
  return {
      {.name = "reentrant",
       .summary = "two blocks in reentrant checkpoints",
       .window = plain_window,
       .models = {Kind::reentrant}},
      {.name = "nonreentrant",
       .summary = "two blocks in non-reentrant checkpoints",
       .window = plain_window,
       .models = {Kind::non_reentrant}},
      {.name = "tiled",
       .summary = "a loss by tiles whose backward runs inside forward; the baseline is untiled",
       .window = plain_window,
       .models = {Kind::tiled},
       .truth = {Kind::untiled},
       .uses = 2},
      {.name = "tied",
       .summary = "one layer used twice",
       .window = plain_window,
       .models = {Kind::tied},
       .uses = 2},
      {.name = "frozen",
       .summary = "a frozen layer between two trained ones",
       .window = plain_window,
       .models = {Kind::frozen}},
      {.name = "unused",
       .summary = "a trained layer that never takes part",
       .window = plain_window,
       .models = {Kind::unused},
       .idle_parameters = "extra."},
      {.name = "leaf",
       .summary = "a leaf module: norm and two branches, fetched as one unit in stage 3",
       .window = plain_window,
       .models = {Kind::leaf},
       .leaf_module = "blk",
       .uses = 2},
      {.name = "skipped_frame",
       .summary = "a linear layer after an embedding, in frames that the compiler skipped",
       .window = two_forwards_window,
       .models = {Kind::skipped_frame},
       .skips_frames = true,
       .forwards = 2,
       .uses = 2},
      {.name = "exception",
       .summary = "the first backward throws; zero_grad, then three clean steps",
       .window = exception_window,
       .models = {Kind::raising},
       .truth = {Kind::mlp},
       .forwards = 2},
  };
}

std::vector<TrainScenario> call_scenarios() {
  return {
      {.name = "plain", .summary = "an mlp with its loss inside", .window = plain_window},
      {.name = "manual",
       .summary = "loss.backward(), after scale() where that is needed",
       .window = plain_window,
       .has_engine_backward = false},
      {.name = "non_scalar",
       .summary = "out.backward(gradient) on what the last layer gave",
       .window = non_scalar_window,
       .models = {Kind::logits}},
      {.name = "two_engines",
       .summary = "two engines in one loss",
       .window = two_engines_window,
       .models = {Kind::mlp, Kind::mlp},
       .uses = 2},
      {.name = "chained_engines",
       .summary = "one engine reads what the other wrote; two micro-batches",
       .window = chained_engines_window,
       .models = {Kind::logits, Kind::stage_pair},
       .accumulation_steps = 2,
       .forwards = 2},
      {.name = "separate_loss",
       .summary = "the loss is made outside the module",
       .window = separate_loss_window,
       .models = {Kind::logits}},
      {.name = "container_output",
       .summary = "forward returns a dataclass: the loss, an activation, no tensor",
       .window = container_window,
       .models = {Kind::dataclass},
       .accumulation_steps = 2,
       .forwards = 2},
      {.name = "regulariser_bypass",
       .summary = "a loss term that reaches its parameters past the engine's outputs (S18)",
       .window = bypass_window,
       .models = {Kind::bypassed}},
  };
}

std::vector<TrainScenario> transform_scenarios() {
  const auto of = [](std::string_view name, std::string_view summary, void (*window)(Pass&)) {
    return TrainScenario{.name = name,
                         .summary = summary,
                         .window = window,
                         .models = {Kind::logits},
                         .forwards = 2};
  };
  return {
      of("func_grad", "torch.func.grad of the engine, then a step", func_grad_window),
      of("func_grad_and_value", "grad_and_value of the engine, then a step",
         func_grad_and_value_window),
      of("func_jacrev", "jacrev of the engine, then a step", func_jacrev_window),
      of("func_vmap", "vmap of the engine, then a step", func_vmap_window),
      of("func_vmap_grad", "vmap of grad of the engine, then a step", func_vmap_grad_window),
      {.name = "func_kd",
       .summary = "a fused loss that takes grad_and_value over weight and input in its forward",
       .window = plain_window,
       .models = {Kind::kd},
       .sometimes = {kTransformInForward}},
  };
}

// Transforms at the other levels at which a model can start one.
std::vector<TrainScenario> transform_level_scenarios() {
  return {{.name = "transform_in_recompute",
           .summary = "func_kd with its head in a reentrant checkpoint",
           .window = plain_window,
           .models = {Kind::kd_reentrant},
           .truth = {Kind::kd_plain},
           .sometimes = {kTransformInForward, kTransformInRecompute},
           .is_in_matrix = false},
          {.name = "transform_in_tiles",
           .summary = "tiles whose own backward, inside forward, takes a transform",
           .window = plain_window,
           .models = {Kind::tiled_kd},
           .truth = {Kind::kd_plain},
           .uses = 2,
           .sometimes = {kTransformInPreUserBackward},
           .is_in_matrix = false},
          {.name = "transform_between_engines",
           .summary = "two engines in one loss, and a transform in the backward of one of them",
           .window = two_engines_window,
           .models = {Kind::kd_late, Kind::mlp},
           .truth = {Kind::kd_plain, Kind::mlp},
           .uses = 2,
           .sometimes = {kTransformBetweenEngines},
           .is_in_matrix = false}};
}

// Named in 'Must show', outside the matrix.
std::vector<TrainScenario> tiled_scenarios() {
  const auto tiled = [](std::string_view name, std::string_view summary) {
    return TrainScenario{.name = name,
                         .summary = summary,
                         .window = plain_window,
                         .models = {Kind::tiled},
                         .truth = {Kind::untiled},
                         .uses = 2,
                         .is_in_matrix = false};
  };
  TrainScenario gas2 = tiled("tiled_gas2", "tiled losses in a window of two micro-batches");
  gas2.window = two_passes_window;
  gas2.accumulation_steps = gas2.forwards = 2;
  TrainScenario overlap = gas2;
  overlap.name = "tiled_overlap";
  overlap.summary = "the same with overlap_comm";
  overlap.has_overlap = true;
  TrainScenario reentrant = tiled("tiled_reentrant", "tiled losses after a checkpoint");
  reentrant.models = {Kind::tiled_reentrant};
  reentrant.truth = {Kind::untiled_deep};
  TrainScenario aborted = tiled("tiled_after_abort", "tiles whose own backward never came");
  aborted.window = tiled_after_abort_window;
  aborted.forwards = 2;
  return {gas2, overlap, reentrant, aborted};
}

std::vector<TrainScenario> further_scenarios() {
  return {{.name = "container_dict",
           .summary = "forward returns a dict",
           .window = container_window,
           .models = {Kind::dict},
           .accumulation_steps = 2,
           .forwards = 2,
           .is_in_matrix = false},
          {.name = "reentrant_frozen",
           .summary = "frozen layers inside reentrant checkpoints",
           .window = plain_window,
           .models = {Kind::reentrant_frozen},
           .is_in_matrix = false},
          {.name = "nonreentrant_frozen",
           .summary = "frozen layers inside non-reentrant checkpoints",
           .window = plain_window,
           .models = {Kind::non_reentrant_frozen},
           .is_in_matrix = false},
          {.name = "undefined_grad",
           .summary = "a parameter in the graph whose gradient is undefined",
           .window = plain_window,
           .models = {Kind::undefined_grad},
           .idle_parameters = "w",
           .is_in_matrix = false},
          {.name = "regulariser_bypass_gas2",
           .summary = "regulariser_bypass in a window of two micro-batches (H8)",
           .window = bypass_gas2_window,
           .models = {Kind::bypassed},
           .accumulation_steps = 2,
           .forwards = 2,
           .is_in_matrix = false},
          {.name = "scale_argument",
           .summary = "two micro-batches, the first with scale_wrt_gas off (P20, P21)",
           .window = scale_argument_window,
           .accumulation_steps = 2,
           .forwards = 2,
           .is_in_matrix = false},
          {.name = "forgotten_scale",
           .summary = "a first backward that was not scaled and is refused; then clean steps (P24)",
           .window = forgotten_scale_window,
           .forwards = 2,
           .has_engine_backward = false,
           .is_in_matrix = false},
          {.name = "leaf_without_grad",
           .summary = "a leaf module whose input needs no gradient: refused in stage 3 (P77)",
           .window = plain_window,
           .leaf_module = "l1",
           .is_in_matrix = false},
          {.name = "alternating",
           .summary = "two heads that take turns in a window of two micro-batches (H14 to H16)",
           .window = alternating_window,
           .models = {Kind::two_losses},
           .accumulation_steps = 2,
           .forwards = 2,
           .uses = 2,
           .is_in_matrix = false}};
}

// What shows the defects of releases after 0.19.5, outside the matrix.
std::vector<TrainScenario> regression_scenarios() {
  return {{.name = "cleared",
           .summary = "zero_grad between two backwards; the second one counts (N5)",
           .window = cleared_window,
           .accumulates_float32 = true,
           .forwards = 2,
           .is_in_matrix = false},
          {.name = "shared_loss_gas_2_4",
           .summary = "one loss of two engines that accumulate 2 and 4 micro-batches (N6)",
           .window = shared_loss_window,
           .models = {Kind::mlp, Kind::mlp},
           .accumulation_steps = 2,
           .forwards = 2,
           .is_in_matrix = false,
           .second_accumulation_steps = 4},
          {.name = "unmanaged_offload",
           .summary = "unmanaged, optimizer on the CPU; a head that every second window skips (N8)",
           .window = unmanaged_skipping_window,
           .models = {Kind::two_losses},
           .accumulation_steps = 2,
           .is_managed = false,
           .is_offloaded = true,
           .forwards = 2,
           .uses = 2,
           .is_in_matrix = false}};
}

std::vector<TrainScenario> make_catalogue() {
  std::vector<TrainScenario> all;
  for (auto part : {call_scenarios(), model_scenarios(), accumulation_scenarios(),
                    transform_scenarios(), transform_level_scenarios(), tiled_scenarios(),
                    further_scenarios(), regression_scenarios()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::span<const TrainScenario> scenario_catalogue() {
  static const std::vector<TrainScenario> kCatalogue = make_catalogue();
  return kCatalogue;
}

Result<const TrainScenario*> find_scenario(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TrainScenario& scenario : scenario_catalogue()) {
    if (scenario.name == name) return &scenario;
    names.push_back(scenario.name);
  }
  return fail(ErrorCode::usage,
              fmt::format("unknown scenario '{}': {}", name, did_you_mean(name, names)));
}

}  // namespace zeroproof::train
