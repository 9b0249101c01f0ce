#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/models.h"
#include "props/train/pass.h"
#include "props/train/train_cell.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof::train {

// What a program does from one optimizer step to the next; the same text for engines and baseline.
struct TrainScenario {
  std::string_view name;
  std::string_view summary;  // one sentence
  void (*window)(Pass& pass) = nullptr;
  std::vector<ModelKind> models = {ModelKind::mlp};  // one an engine
  // What the baseline trains in their place, where that is a different text; equal parameters.
  std::vector<ModelKind> truth = {};

  std::int64_t accumulation_steps = 1;
  bool is_managed = true;
  bool is_offloaded = false;
  bool has_overlap = false;          // overlap_comm, whatever the stage
  bool skips_frames = false;         // stage 3 under DeepCompile, every frame skipped
  bool accumulates_float32 = false;  // whatever the model's dtype
  std::string_view leaf_module;      // of stage 3
  std::int64_t forwards = 1;         // of a window
  std::int64_t uses = 1;             // how often one forward adds to one gradient, at most
  std::string_view idle_parameters;  // those with this prefix get no gradient

  // Conditions that some execution of an exploration has to reach (TransformWatch).
  std::vector<std::string_view> sometimes = {};

  bool has_engine_backward = true;
  bool has_tensor_backward = true;
  bool is_in_matrix = true;
  std::int32_t second_accumulation_steps = 0;  // of the second engine; 0: as the first

  const std::vector<ModelKind>& truth_models() const { return truth.empty() ? models : truth; }
  // The engine of the last model owns the loss.
  std::size_t engines() const { return models.size(); }
};

// Static; the scenarios of the matrix first.
std::span<const TrainScenario> scenario_catalogue();

// An error with the nearest name.
Result<const TrainScenario*> find_scenario(std::string_view name);

// Whether the cell makes sense at all: the scenario has this kind of backward.
bool is_applicable(const TrainScenario& scenario, const TrainCell& cell);

// The error that the engine has to raise there, as upstream does; none where it has to train.
std::optional<EngineErrorId> expected_refusal(const TrainScenario& scenario, const TrainCell& cell);

// Whether a configuration is refused as a whole, by an error that has no id.
bool is_configuration_refused(const TrainScenario& scenario, const TrainCell& cell);

// Unmanaged accumulation below stage 2: gradients are not reduced before step().
bool reduces_in_step(const ZeroConfig& config);

// What an engine of a cell is configured with.
ZeroConfig config_of(const TrainScenario& scenario, const TrainCell& cell, std::size_t engine = 0);

// One sentence for each quirk without an effect in the cell; empty where all of upstream's
// were asked for.
std::vector<std::string> quirk_notes(const TrainScenario& scenario, const TrainCell& cell);

}  // namespace zeroproof::train
