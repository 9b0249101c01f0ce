#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zeroproof {

enum class FindingLevel : std::uint8_t { error, warning };

// A finding as tools outside read it: what rule, where in which file. The common input of SARIF,
// annotations and pictures; every verb turns its own findings into it. Plain data;
// an empty string or a zero means that there is none.
struct LocatedFinding {
  std::string rule;       // stable id: "epilogue.once_after_last_hook", "queue.order"
  std::string number;     // "P2"
  std::string statement;  // what the rule demands, one sentence
  std::string source;     // where the rule comes from
  FindingLevel level = FindingLevel::error;
  std::string text;     // one line: what is wrong
  std::string subject;  // what was looked at: "S2 deepspeed-0.18.3 any_topological N=4"
  std::string file;     // path as the user named it
  std::uint64_t line = 0;
  std::uint64_t lc = 0;  // of the event
  std::int32_t rank = -1;
  std::int64_t call = -1;  // of the graph task, where there is no event
  std::string reproduce;   // arguments of zeroproof that show it again: "replay zps1:…"
};

using LocatedFindings = std::vector<LocatedFinding>;

}  // namespace zeroproof
