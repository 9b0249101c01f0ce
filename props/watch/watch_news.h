#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"

namespace zeroproof {

// Where a rank stands that others wait for.
struct WatchPlace {
  std::int32_t rank = 0;
  DiagnosisMoment last;       // its last event that means something; lc 0: none
  std::int64_t quiet_ns = 0;  // since then, as long as it is watched
  bool is_over = false;       // its recording has ended
};

// One thing that a watched job did.
struct WatchNews {
  enum class Kind : std::uint8_t {
    began,    // ranks appeared
    ended,    // ranks came to their end record
    died,     // the recording of ranks stopped without one
    waits,    // ranks wait in a collective; it may still go on
    goes_on,  // they do not wait there any more
    finding,  // of the diagnosis
    unreadable,
    over,  // all ranks of the run have ended
  };
  Kind kind = Kind::began;
  std::int64_t at_ns = 0;  // after the watch began
  std::string run;         // the word of TraceStory::run
  std::int32_t world = 0;
  std::vector<std::int32_t> ranks;
  DiagnosisWait wait;               // waits, goes_on
  std::vector<WatchPlace> absent;   // waits, and a finding about a hang
  std::int64_t quiet_ns = 0;        // for how long no event came
  std::optional<Diagnosis> answer;  // finding
  bool is_hang = false;             // it is reported because the job stands still
  std::string text;                 // unreadable
};

// "began", "ended", ...
std::string_view watch_kind_name(WatchNews::Kind kind);

}  // namespace zeroproof
