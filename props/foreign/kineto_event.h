#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "props/foreign/rank_dump.h"

namespace zeroproof {

// Collects what the slices of a Kineto trace say about collectives and node order. Slices stand in
// the file in any order; `finish` sorts by their start.
class KinetoEvents {
 public:
  explicit KinetoEvents(RankDump& dump) : dump_(dump) {}

  // Whether an element of traceEvents may be a slice of interest, by its text: most are none and
  // need no parser.
  static bool is_of_interest(std::string_view text);

  // One element of traceEvents; anything else than a slice of interest is passed over. An error
  // says which limit was met.
  tl::expected<void, std::string> add(const nlohmann::json& event);

  // `head`: the members beside traceEvents. The collectives come in the order of issuing: from
  // record_param_comms where its arguments name them, else from the calls of c10d or, where more of
  // these are there, from the annotations of the library. Without a Seq argument they are counted
  // per group from 1. An error names a member that cannot be.
  tl::expected<void, std::string> finish(const nlohmann::json& head);

 private:
  struct Timed {
    double start_us = 0;
    DumpedCollective collective;
    bool has_number = false;
  };
  struct TimedNode {
    double start_us = 0;
    DumpedNode node;
  };

  void add_node(const nlohmann::json& event, const std::string& name);
  void add_call(const nlohmann::json& event, const std::string& name);
  void add_annotation(const nlohmann::json& event, const std::string& name);
  void add_comms(const nlohmann::json& event);
  void take_message_ends(const nlohmann::json& arguments, const CollectiveShape& shape,
                         Timed& timed) const;
  tl::expected<void, std::string> take_head(const nlohmann::json& head);
  void take_groups(const nlohmann::json& config);
  std::vector<Timed>& evidence();
  void name_group_of_calls(std::vector<Timed>& calls);
  void finish_message(DumpedCollective& one) const;

  RankDump& dump_;
  std::vector<TimedNode> nodes_;
  std::vector<Timed> calls_;
  std::vector<Timed> annotations_;
  std::vector<Timed> comms_;
  std::uint64_t nameless_comms_ = 0;
};

}  // namespace zeroproof
