#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// How bad it is.
enum class Gravity : std::uint8_t {
  defect,  // numbers are wrong, the run failed, hangs or will
  hazard,  // no result is wrong yet
  note,    // refused by design, or only worth knowing
};

// "defect", "hazard", "note".
std::string_view gravity_name(Gravity gravity);

// One moment of the story, on one rank.
struct DiagnosisMoment {
  std::int32_t rank = 0;
  std::uint64_t lc = 0;  // 0: the source has no logical clock
  std::string text;
  bool is_bad = false;  // where it went wrong
};

// Who cannot go on, and for whom.
struct DiagnosisWait {
  std::int32_t rank = 0;
  std::vector<std::int32_t> for_ranks;
  std::string text;                 // "all_reduce number 4 of group world"
  std::vector<std::int32_t> ranks;  // all that wait there, `rank` first; empty: only `rank`
};

// One answer in words: what happened, on which rank, in which order, what rule it broke, what to
// look at. docs/reference/output.md lists the kinds.
struct Diagnosis {
  std::string kind;  // stable: "collective.missing"
  Gravity gravity = Gravity::defect;
  std::string what;                 // one sentence
  std::vector<std::int32_t> ranks;  // on which it shows, ascending
  std::vector<std::string> files;
  std::vector<DiagnosisMoment> order;  // in the order of each rank, cut to what matters
  std::string rule;        // "P28 accumulate.retained_graph_sums: ..." or the framework's own
  std::string look_at;     // what to do next
  std::string parameter;   // empty: none in particular
  std::string collective;  // empty: none
  std::optional<DiagnosisMoment> last_common;  // the last event that all ranks share
  std::vector<DiagnosisWait> waits;
};

}  // namespace zeroproof
