#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>

#include "props/foreign/rank_dump.h"

namespace zeroproof {

// One element of a flight recorder's `entries`. An error names the field.
tl::expected<DumpedCollective, std::string> flight_entry(const nlohmann::json& entry);

// The rest of a dump: version, pg_config. Unknown parts are passed over.
void take_flight_head(const nlohmann::json& head, RankDump& dump);

}  // namespace zeroproof
