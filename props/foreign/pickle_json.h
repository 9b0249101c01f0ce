#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>

#include "props/foreign/pickle.h"

namespace zeroproof {

// One value of a pickle as JSON; keys become text. Shared and self-containing values end at a depth
// and a number of values, which is an error.
tl::expected<nlohmann::json, std::string> pickle_json(const PickleDocument& document,
                                                      std::uint32_t index);

}  // namespace zeroproof
