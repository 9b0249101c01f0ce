#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/result.h"
#include "props/foreign/flight_match.h"
#include "props/foreign/rank_dump.h"
#include "props/replay/diagnosis.h"

namespace zeroproof {

// What the dumps of one run say together.
struct DumpReport {
  std::vector<RankDump> dumps;           // without their lists, which may be long
  std::vector<std::size_t> collectives;  // of each dump
  std::vector<std::size_t> nodes;
  std::map<std::string, std::uint64_t> verdicts;  // by flight_verdict_name, over pairs of ranks
  std::vector<Diagnosis> diagnosis;
  std::vector<Error> faults;  // dumps that could not be read

  bool is_falsified() const;
};

// Compares the ranks: the collectives of every group by their numbers (from the first number that
// every ring buffer still has), messages by their ends, and of Kineto traces the order of nodes. A
// dump without a rank of its own gets its place in the list.
DumpReport compare_dumps(std::vector<RankDump> dumps);

}  // namespace zeroproof
