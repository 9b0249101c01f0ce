#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "props/train/case_runner.h"

namespace zeroproof::train {

// A case and choices that show a finding.
struct FailingCase {
  EngineCase engine_case;
  Choices choices;
  CaseRun run;             // of exactly these choices
  std::uint64_t runs = 0;  // that it took to get here
  bool is_minimal = false;
};

// Something smaller that shows a finding of the same kind: fewer steps, fewer ranks, a smaller
// stage, without preemption; then as few choices other than the first option as delta debugging
// finds, none after the last that matters. What is returned has been run again as it stands.
// `should_stop` ends it early.
FailingCase minimize_case(const EngineCase& engine_case, const Choices& choices,
                          const std::string& kind, const std::function<bool()>& should_stop);

}  // namespace zeroproof::train
