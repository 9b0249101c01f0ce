#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "props/replay/properties_level.h"
#include "props/train/compare.h"
#include "props/train/scenario.h"

namespace zeroproof::train {

enum class CellStatus : std::uint8_t {
  equal,           // trained; equal to the baseline where that was asked for
  different,       // trained, and differs
  refused,         // the error that upstream raises there, as documented
  failed,          // another error
  not_applicable,  // the scenario has no such backward
};

std::string_view status_name(CellStatus status);

struct TrainReport {
  TrainCell cell;
  CellStatus status = CellStatus::equal;
  std::string refusal;  // "manual_backward_unsupported"; of a cell that was refused
  std::string error;    // why it is refused, failed or differs; one line
  bool is_compared = false;
  Comparison comparison;
  std::optional<double> loss_scale;  // after the last step, of fp16
  std::int64_t steps = 0;            // optimizer steps that were run
  std::int64_t skipped_steps = 0;    // of these, by the first engine for an overflow
  std::int64_t live_bytes = 0;       // of the device at the end, of rank 0
  std::int64_t peak_bytes = 0;
  // Of all ranks together. Absent when no property was checked; without checks of properties only
  // those that the comparison with the baseline answers.
  std::optional<PropertiesReport> properties;

  bool is_bad() const;  // different, failed, or a property is falsified
};

struct TrainChecks {
  bool has_baseline = false;
  bool has_properties = false;  // of events, accesses and numbers; compares with the baseline too
};

struct TrainOptions {
  TrainChecks checks = {};
  std::string trace_path;  // empty for none; several ranks write "_r0" and so on
};

// One cell on the host runtime, a thread a rank. Errors of the engine are in the report; an error
// here is a scenario that does not exist, or a trace that cannot be written.
Result<TrainReport> train(const TrainCell& cell, const TrainOptions& options);

// The same for a scenario that is in no catalogue.
TrainReport train(const TrainScenario& scenario, const TrainCell& cell, const TrainChecks& checks);

}  // namespace zeroproof::train
