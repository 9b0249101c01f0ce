#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "props/foreign/group_compare.h"
#include "props/foreign/rank_dump.h"
#include "props/replay/diagnosis.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What the dumps of one call say together.
struct DumpReport {
  std::vector<RankDump> dumps;           // without their lists, which may be long
  std::vector<std::size_t> collectives;  // of each dump
  std::vector<std::size_t> nodes;
  FlightVerdictCounts verdicts;
  std::vector<Diagnosis> diagnosis;
  std::vector<Error> faults;  // dumps that could not be read, or stop early

  bool is_falsified() const;
};

// Compares the ranks of each run: collectives by group and number, messages by their ends, and of
// Kineto traces the order of nodes; says which ranks left no file. A dump without a rank of its own
// gets its place in the list.
DumpReport compare_dumps(std::vector<RankDump> dumps);

}  // namespace zeroproof
