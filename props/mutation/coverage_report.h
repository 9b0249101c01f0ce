#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "props/reference/findings.h"

namespace zeroproof::mutation {

// How much of a hunt's runs the reference walker has judged: what is unspecified, in per cent and
// by freedom, and how often each rule was applied.
std::string coverage_text(const reference::Coverage& coverage);
nlohmann::ordered_json coverage_json(const reference::Coverage& coverage);

}  // namespace zeroproof::mutation
