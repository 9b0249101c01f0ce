#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "props/replay/collective_purpose.h"
#include "props/replay/digest_facts.h"
#include "props/replay/framework.h"
#include "props/replay/job_facts.h"
#include "props/replay/rank_lanes.h"
#include "props/replay/sequence_digest.h"
#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// How the backwards since the last optimizer step relate to its forwards; the property that a
// wrong gradient falsifies.
struct GradientWindow {
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  bool has_later_forward = false;  // a forward after the first backward
  bool has_later_step = false;     // a step between them that was no boundary

  // "P26" … "P30".
  std::string_view property_number() const;
};

// What is kept of one rank's trace for comparison with other files: hashes, at most about 3 KB a
// group, and never the events. Gradients are kept up to kValuesMax numbers, and only those formed
// before the first optimizer step: afterwards the parameters need not be equal (the inner
// optimizers of stage 0 and 1-3 count differently).
class RankDigest {
 public:
  static constexpr std::size_t kValuesMax = std::size_t{1} << 20;
  static constexpr std::size_t kMessageLanesMax = 256;

  struct Gradient {
    std::string name;
    std::optional<std::vector<double>> values;
    std::string_view property_number;
    std::uint64_t lc = 0;  // of the last event before it
  };

  // `stage`: ZeRO's, -1 without.
  explicit RankDigest(std::int32_t stage = -1) : stage_(stage) {}

  void declare(const ParamRecord& param, NameTable& names);
  void add_tensor(std::string_view role, std::string_view name, const std::vector<double>* values);
  void on_event(const HookEvent& event, const NameTable& names);
  // `names` of the events and `job` of the other records; once, after the last of them.
  void finish(bool is_complete, const NameTable& names, const JobFacts& job);

  // One object for equal member lists; with what other files have.
  void share_members(MemberTable& table);
  void set_framework(Framework framework) { framework_ = framework; }
  // On a device a wait ends before the work does, so that a completion is no proof about peers.
  void set_completions_seen_early() { has_early_completions_ = true; }
  // Too many numbers are kept over all files.
  void drop_gradients();
  // Killed: what is open at the end of the file is no fault of the recording.
  bool is_killed() const { return is_killed_; }

  Framework framework() const { return framework_; }
  std::int32_t stage() const { return stage_; }
  // False for a trace that ends early: what it has is compared, that it ends is not.
  bool is_complete() const { return is_complete_; }
  // Whether what was open at `lc` may have kept the rank from going on: it was killed, its file
  // ends early, or an exception came later.
  bool may_have_waited_since(std::uint64_t lc) const {
    return !is_complete_ || is_killed_ || (last_exception_ && last_exception_->lc > lc);
  }
  bool is_truncated_by_cap() const { return is_over_cap_; }
  std::uint64_t parameters_hash() const { return parameters_hash_; }
  const std::vector<Gradient>& gradients() const { return gradients_; }
  std::size_t values_kept() const { return values_kept_; }
  const SequenceDigest& gathers() const { return gathers_; }
  // Overflows, loss scales and updates, by the marks.
  const SequenceDigest& decisions() const { return decisions_; }
  const SequenceDigest& hooks() const { return hooks_; }
  // Optimizer steps, each with the number of collectives before it.
  const SequenceDigest& steps() const { return steps_; }
  const std::vector<CollectiveLane>& collectives() const { return collectives_; }
  const std::vector<MessageLane>& messages() const { return messages_; }
  bool has_early_completions() const { return has_early_completions_; }
  bool has_peers() const { return has_peers_; }
  bool has_any_source() const { return has_any_source_; }
  bool has_too_many_messages() const { return has_too_many_messages_; }
  const DeclaredParameters& parameters() const { return parameters_; }
  const std::optional<DigestException>& last_exception() const { return last_exception_; }
  const LostReasons& lost() const { return lost_; }
  // Whether the file says what wraps its models (hooktrace 1.1).
  bool has_wrapper() const { return has_wrapper_; }
  // The group of the data parallelism, where every model of the rank has the same; empty: unknown.
  const std::string& data_group() const { return data_group_; }
  std::uint64_t collective_count() const { return collective_count_; }
  std::uint64_t message_count() const { return message_count_; }
  std::size_t memory_bytes() const;

 private:
  // One declared parameter, until it is known which of them the wrapper ignores.
  struct Declared {
    NameId name;
    std::uint64_t hash = 0;
    std::uint64_t shape = 0;
    bool is_trained = true;
  };

  // A work that failed is complete as well. So a completion counts once the rank has gone on, and
  // not if an exception comes first.
  struct Completion {
    std::size_t lane = 0;
    std::int64_t number = 0;
    bool joins_all_ranks = false;
  };

  void on_issue(const HookEvent& event, const NameTable& names);
  void on_message(const HookEvent& event, const NameTable& names);
  void on_complete(const HookEvent& event, const NameTable& names);
  void confirm_completions();
  void sum_parameters(const NameTable& names, const JobFacts& job);
  void take_lost(const std::vector<NoteRecord>& notes);
  void take_wrappers(const JobFacts& job);
  void describe_lanes(const NameTable& names, const JobFacts& job);
  void on_mark(const HookEvent& event, const NameTable& names);
  void on_exception(const HookEvent& event, const NameTable& names);
  void follow_window(const HookEvent& event, std::string_view name);
  std::size_t collective_lane(NameId group, const NameTable& names);  // its index
  MessageLane* message_lane(const HookEvent& event, const NameTable& names);
  std::uint64_t hash_of(NameId name, const NameTable& names);
  std::uint64_t purpose_hash(const CollectivePurpose& purpose, const NameTable& names);
  std::string_view property_number() const;

  std::int32_t stage_ = -1;
  Framework framework_ = Framework::plain;
  std::vector<CollectiveLane> collectives_;
  std::vector<MessageLane> messages_;
  std::vector<std::int32_t> lane_of_group_;  // by NameId; -1: none yet
  std::vector<Completion> unconfirmed_;
  std::vector<std::uint64_t> name_hashes_;  // by NameId
  PurposeTracker purposes_;
  SequenceDigest gathers_;
  SequenceDigest decisions_;
  SequenceDigest hooks_;
  SequenceDigest steps_;
  std::vector<Declared> declared_;
  DeclaredParameters parameters_;
  std::optional<DigestException> last_exception_;
  LostReasons lost_;
  std::string data_group_;
  std::uint64_t collective_count_ = 0;
  std::uint64_t message_count_ = 0;
  std::vector<Gradient> gradients_;
  std::size_t values_kept_ = 0;
  std::uint64_t parameters_hash_ = 0;
  std::map<EngineId, GradientWindow> windows_;
  std::uint64_t last_lc_ = 0;
  bool has_stepped_ = false;
  bool is_over_cap_ = false;
  bool is_complete_ = false;
  bool is_killed_ = false;
  bool has_early_completions_ = false;
  bool has_peers_ = false;
  bool has_any_source_ = false;
  bool has_too_many_messages_ = false;
  bool has_wrapper_ = false;
};

}  // namespace zeroproof
