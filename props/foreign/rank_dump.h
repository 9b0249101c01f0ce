#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// Where the facts of a dump come from.
enum class DumpFormat { flight_recorder_json, flight_recorder_pickle, kineto };

// "flight_recorder_json", ...
std::string_view dump_format_name(DumpFormat format);

// One collective or point-to-point operation as a rank issued it.
struct DumpedCollective {
  std::string op;           // "all_reduce", "send", ... without the library's name
  std::string group;        // the name that joins ranks
  std::int64_t number = 0;  // of the collective in its group; of the p2p operation for send, recv
  std::int32_t peer_from = -1;  // send, recv: ranks within the group
  std::int32_t peer_to = -1;
  std::vector<std::vector<std::int64_t>> input_sizes;
  std::vector<std::vector<std::int64_t>> output_sizes;
  std::vector<std::string> input_dtypes;
  std::vector<std::string> output_dtypes;
  std::string state;  // scheduled, started, completed; empty: the format does not say
  bool is_retired = false;
  std::string frame;  // "train.py:31 step" of the innermost frame of the user, if recorded

  bool is_point_to_point() const { return op == "send" || op == "recv"; }
};

// A node of autograd's backward, in the order of execution.
struct DumpedNode {
  std::string name;
  std::int64_t sequence_nr = -1;  // -1: AccumulateGrad, or not told
};

// What one file tells about one rank.
struct RankDump {
  std::string path;
  DumpFormat format = DumpFormat::flight_recorder_json;
  std::string version;     // of the dump's format
  std::int32_t rank = -1;  // -1: neither the file nor its name tells
  std::int32_t world = 0;  // 0: unknown
  std::map<std::string, std::vector<std::int32_t>> groups;  // members, where told
  std::vector<DumpedCollective> collectives;                // in the order of issuing
  std::vector<DumpedNode> nodes;                            // kineto
  std::uint64_t events = 0;                                 // entries of the file that were read
};

}  // namespace zeroproof
