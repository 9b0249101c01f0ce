#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"
#include "model/names.h"
#include "props/replay/ddp_rules.h"
#include "props/replay/deepspeed_signs.h"
#include "props/replay/diagnosis.h"
#include "props/replay/framework.h"
#include "props/replay/fsdp2_rules.h"
#include "props/replay/plain_rules.h"
#include "sim/trace/record.h"

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
};

// What one file tells beyond the levels: how it ended, and what its framework's design forbids.
struct TraceStory {
  Framework framework = Framework::plain;
  std::int32_t rank = 0;
  std::int32_t world = 1;
  std::string run;  // files of one run have the same word
  bool is_complete = false;
  std::uint64_t last_lc = 0;
  std::uint64_t collectives = 0;
  std::uint64_t order_hash = 0;      // of gradient hooks and of what collectives were issued for
  std::int32_t open_transforms = 0;  // functorch levels open at the end
  std::vector<OpenCollective> open_collectives;    // the first few
  std::vector<SeenException> exceptions;           // the first few
  std::vector<DiagnosisMoment> last;               // the last events that mean something
  std::vector<Diagnosis> found;                    // without files; by the rules of the framework
  std::vector<NoteRecord> notes;                   // what the recorder could not observe, and why
  std::map<std::int64_t, WrapperRecord> wrappers;  // by model; the last of each
  std::map<std::int64_t, OptimizerRecord> optimizers;  // by id; the last of each
  std::map<std::string, GroupRecord, std::less<>> groups;
};

// Follows one file for its story. Feed it in order; memory is bounded by what is open. Not
// thread-safe.
class StoryLevel {
 public:
  // `names` must outlive it.
  StoryLevel(const HeaderRecord& header, const NameTable& names);

  void declare_param(std::string_view name) { ddp_.declare_param(name); }
  void declare(const NoteRecord& note) { story_.notes.push_back(note); }
  void declare(const WrapperRecord& wrapper) { story_.wrappers[wrapper.model] = wrapper; }
  void declare(const OptimizerRecord& one) { story_.optimizers[one.id] = one; }
  void declare(const GroupRecord& group) { story_.groups[group.name] = group; }
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
  void follow_collective(const HookEvent& event);
  void follow_order(const HookEvent& event);
  std::uint64_t hash_of(NameId name);
  void remember(const HookEvent& event);

  const NameTable& names_;
  FrameworkFinder finder_;
  TraceStory story_;
  DdpRules ddp_;
  Fsdp2Rules fsdp2_;
  PlainRules plain_;
  DeepSpeedSigns deepspeed_;
  std::map<std::pair<NameId, std::int64_t>, HookEvent> open_;  // by group and number
  std::vector<std::uint64_t> hashes_;                          // by NameId
  std::array<Recent, 8> recent_ = {};
  std::size_t next_recent_ = 0;  // events remembered so far; the oldest are overwritten
};

}  // namespace zeroproof
