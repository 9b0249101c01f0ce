#pragma once

#include "props/train/case_spec.h"
#include "props/train/scenario.h"

namespace zeroproof::train {

// The scenario of a case: its models and its windows. `spec` must outlive it.
TrainScenario scenario_of(const CaseSpec& spec);

}  // namespace zeroproof::train
