#pragma once

#include "props/hunt/overlap_judge.h"
#include "props/train/case_spec.h"

namespace zeroproof::mutation {

hunt::OverlapRules overlap_rules_of(const train::CaseSpec& spec);

}  // namespace zeroproof::mutation
