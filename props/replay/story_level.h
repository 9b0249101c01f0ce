#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "props/replay/ddp_rules.h"
#include "props/replay/deepspeed_signs.h"
#include "props/replay/diagnosis.h"
#include "props/replay/framework.h"
#include "props/replay/fsdp2_rules.h"
#include "props/replay/hand_reductions.h"
#include "props/replay/job_facts.h"
#include "props/replay/numbers_digest.h"
#include "props/replay/numbers_rules.h"
#include "props/replay/optimizer_rules.h"
#include "props/replay/outermost_backward.h"
#include "props/replay/plain_rules.h"
#include "props/replay/reduction_ledger.h"
#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// A collective that was issued and, as far as the file goes, never completed.
struct OpenCollective {
  std::uint64_t lc = 0;
  std::string text;
};

// An exception that the recording saw.
struct SeenException {
  std::uint64_t lc = 0;
  std::string type;
  std::string message;
  bool is_uncaught = false;  // the recording says that the job did not catch it
};

// Which rules looked at one file, for the line that says what "ok" means.
struct CheckedWork {
  std::vector<std::string> rules;     // "order of buckets", by framework, in words
  std::vector<std::string> left_out;  // "order of buckets: not observed: ..."
};

// The facts of one file beyond the levels: how it ended, and what its framework's design forbids.
struct TraceStory {
  Framework framework = Framework::plain;
  std::int32_t rank = 0;
  std::int32_t world = 1;
  std::string run;  // files of one run have the same word
  bool is_complete = false;
  std::uint64_t last_lc = 0;
  std::uint64_t collectives = 0;
  std::int32_t open_transforms = 0;              // functorch levels open at the end
  std::vector<OpenCollective> open_collectives;  // the first few
  std::vector<SeenException> exceptions;         // the first few
  std::vector<DiagnosisMoment> last;             // the last events that mean something
  std::vector<Diagnosis> found;                  // without files; by the rules of the framework
  JobFacts facts;                                // what its records say; see Replay
  std::int64_t stage = -1;                       // of ZeRO; -1: none
  NumbersDigest numbers;
  CheckedWork checked;
  bool ends_by_exception = false;  // the last event is one
};

// Follows one file for its story. Feed it in order; memory is bounded by what is open. Not
// thread-safe.
class StoryLevel {
 public:
  // `names` and `facts` must outlive it; `facts` has each record before the level sees it.
  StoryLevel(const HeaderRecord& header, const NameTable& names, JobFacts& facts);

  void declare(const WrapperRecord& wrapper) { finder_.on_wrapper(wrapper); }
  void declare(const NumbersRecord& numbers);
  // `line` is the event's line.
  void on_event(const HookEvent& event, std::string_view line);
  TraceStory finish(bool is_complete);

 private:
  struct Recent {
    EventKind kind = EventKind::unknown;
    std::int32_t rank = 0;
    std::uint64_t lc = 0;
    GraphTaskId graph_task;
    NameId name;
    NameId param;
    NameId group;
    NameId exception;
    NameId message;
    std::int64_t index = -1;
    std::int64_t bytes = -1;
  };

  DiagnosisMoment moment(const Recent& slot) const;
  void follow_framework(const HookEvent& event, std::string_view line);
  void follow_collective(const HookEvent& event);
  void take_rules(bool is_complete);
  void remember(const HookEvent& event);

  const NameTable& names_;
  JobFacts& facts_;
  FrameworkFinder finder_;
  OutermostBackward backward_;
  TraceStory story_;
  DdpRules ddp_;
  Fsdp2Rules fsdp2_;
  PlainRules plain_;
  DeepSpeedSigns deepspeed_;
  ReductionLedger ledger_;
  HandReductions by_hand_;
  OptimizerRules optimizers_;
  NumbersRules numbers_;
  // A send or receive is numbered apart from the collectives of its group.
  using CollectiveKey = std::tuple<NameId, bool, std::int64_t>;
  CollectiveKey key_of(const HookEvent& event) const;

  std::map<CollectiveKey, HookEvent> open_;
  std::array<Recent, 8> recent_ = {};
  bool has_steps_ = false;
  bool has_numbers_ = false;
  std::size_t next_recent_ = 0;  // events remembered so far; the oldest are overwritten
};

}  // namespace zeroproof
