#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// Where the facts of a dump come from.
enum class DumpFormat { flight_recorder_json, flight_recorder_pickle, kineto };

// "flight_recorder_json", ...
std::string_view dump_format_name(DumpFormat format);

using TensorSizes = std::vector<std::vector<std::int64_t>>;

// What operations of a program have in common: the ranks of a run share few shapes.
struct CollectiveShape {
  std::string op;     // "all_reduce", "send", ... without the library's name
  std::string group;  // its name; empty: the format does not say
  std::string group_desc;
  TensorSizes input_sizes;
  TensorSizes output_sizes;
  std::vector<std::string> input_dtypes;
  std::vector<std::string> output_dtypes;
  std::string frame;  // "train.py:31 step" of the innermost frame of the user, if recorded

  auto operator<=>(const CollectiveShape&) const = default;
};

// Keeps each shape and each list of members once, at an address that does not change.
class DumpWords {
 public:
  const CollectiveShape* shape(CollectiveShape one) {
    return &*shapes_.insert(std::move(one)).first;
  }
  const std::vector<std::int32_t>* members(std::vector<std::int32_t> ranks) {
    return &*members_.insert(std::move(ranks)).first;
  }

 private:
  std::set<CollectiveShape> shapes_;
  std::set<std::vector<std::int32_t>> members_;
};

enum class OpState : std::uint8_t { unknown, scheduled, started, completed };

// "scheduled", ...; empty for unknown.
std::string_view op_state_name(OpState state);

// One collective or point-to-point operation as a rank issued it.
struct DumpedCollective {
  const CollectiveShape* shape = nullptr;  // owned by RankDump::words
  std::int64_t number = 0;  // of the collective in its group; of the p2p operation for send, recv
  std::int32_t from_rank = -1;  // send, recv: global ranks where the group's are known, else within
  std::int32_t to_rank = -1;    // the group; -1: any
  OpState state = OpState::unknown;
  bool is_retired = false;  // the library looks at it no more: it finished or failed
  bool is_point_to_point = false;

  bool is_waiting() const {
    return (state == OpState::scheduled || state == OpState::started) && !is_retired;
  }
};

// A node of autograd's backward, in the order of execution.
struct DumpedNode {
  std::string name;
  std::int64_t sequence_nr = -1;  // -1: AccumulateGrad, or not recorded
};

// A process group as one rank describes it.
struct DumpedGroup {
  std::string desc;
  const std::vector<std::int32_t>* members = nullptr;  // ascending, owned by RankDump::words
};

// How far a rank came in a group, by the library's own count of collectives; -1: none.
struct GroupProgress {
  std::int64_t enqueued = -1;
  std::int64_t completed = -1;
};

// The content of one file about one rank.
struct RankDump {
  std::string path;
  DumpFormat format = DumpFormat::flight_recorder_json;
  std::string version;                            // of the dump's format
  std::int32_t rank = -1;                         // -1: neither in the file nor in its name
  std::int32_t world = 0;                         // 0: unknown
  std::map<std::string, DumpedGroup> groups;      // those with members, by name
  std::map<std::string, GroupProgress> progress;  // by the group's name, where the dump has it
  std::vector<DumpedCollective> collectives;      // in the order of issuing
  std::vector<DumpedNode> nodes;                  // kineto
  std::uint64_t events = 0;                       // entries of the file that were read
  std::int64_t first_record = 0;  // flight recorder: above 1 once the ring has dropped something
  double begin_us = 0;            // kineto: start of the first slice that was read, host's clock
  bool has_numbers = true;        // numbers are the library's own; false: counted in this window
  bool is_truncated = false;      // the file stops early; what stood before was read
  std::uint64_t unread = 0;       // kineto: communication slices without usable fields
  std::shared_ptr<DumpWords> words;

  bool is_window() const { return format == DumpFormat::kineto || is_truncated; }
};

}  // namespace zeroproof
