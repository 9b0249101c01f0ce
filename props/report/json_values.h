#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "props/property.h"

namespace zeroproof {

// Members keep the order in which they are written.
using Json = nlohmann::ordered_json;

Json finding_json(const Finding& finding);

// {"held": [ids], "falsified": [findings], "latent": [findings], "not_applicable": [ids]}
Json verdicts_json(const std::vector<Verdict>& verdicts);

// Bytes that are no UTF-8, as paths may have them, become replacement characters.
std::string document_text(const Json& document);

}  // namespace zeroproof
