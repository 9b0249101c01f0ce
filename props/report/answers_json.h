#pragma once

#include <nlohmann/json_fwd.hpp>

#include "props/report/diagnosis_report.h"

namespace zeroproof {

// One entry of "diagnosis".
nlohmann::ordered_json diagnosis_json(const Diagnosis& one);

// Adds "diagnosis", and "dumps" and "what_if" where there are any.
void add_answers(const ReplayAnswers& answers, nlohmann::ordered_json& document);

}  // namespace zeroproof
