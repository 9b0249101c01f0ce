#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>

#include "props/foreign/rank_dump.h"

namespace zeroproof {

// Collects the `entries` of a flight-recorder dump, and then what the rest of it says.
class FlightEntries {
 public:
  explicit FlightEntries(RankDump& dump) : dump_(dump) {}

  // One element of `entries`. An error names the field.
  tl::expected<void, std::string> add(const nlohmann::json& entry);

  // The rest of the dump: version, pg_config, pg_status. Unknown parts are passed over. Ranks
  // within groups become global ones where the members are known.
  tl::expected<void, std::string> finish(const nlohmann::json& head);

 private:
  void take_groups(const nlohmann::json& config);
  void take_progress(const nlohmann::json& status);
  void make_ranks_global();
  void number_batch(const nlohmann::json& entry);
  void close_batches();

  RankDump& dump_;
  std::map<std::string, std::string> names_;  // of groups, by pg_id
};

}  // namespace zeroproof
