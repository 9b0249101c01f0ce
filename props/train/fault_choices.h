#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/world/fault_kind.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::train {

// The faults of an execution as choices: first the kind (site "fault.kind", option "none" ends the
// plan), so that rare kinds come as often as others, then the place (site "fault.event").
class FaultChoices {
 public:
  // By kind; see PlannedFaults::places().
  explicit FaultChoices(const std::vector<sim::Fault>& places);

  // Those that have a place, in order.
  std::vector<sim::FaultKind> kinds() const;
  // At most `most`, one after the other. ExecutionCut passes through.
  std::vector<sim::Fault> choose(Chooser& chooser, std::int64_t most) const;

 private:
  struct Kind {
    std::vector<sim::Fault> places;
    std::vector<std::string> names;
  };
  std::vector<Kind> kinds_;
};

}  // namespace zeroproof::train
