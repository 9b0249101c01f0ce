#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/reference/fetch_order.h"
#include "props/reference/gather_log.h"
#include "props/reference/part.h"
#include "props/reference/retained.h"
#include "props/reference/uses.h"

namespace zeroproof::reference {

// Which parameters of stage 3 must be whole, may be whole or must be free:
// docs/spec/zero/stage3.md. It replays fetches and releases beside the engine, with the order that
// the engine records, and compares what each of them gathers and frees. residency_fetch.cpp and
// residency_release.cpp have those two; this file's .cpp follows where parameters are.
class Residency final : public Part {
 public:
  explicit Residency(const Surroundings& around);

  void on_event(const HookEvent& event) override;

 private:
  using Id = std::size_t;
  using Ids = std::vector<Id>;
  enum class Where : std::uint8_t { free, inflight, whole };

  struct State {
    Where where = Where::free;
    bool is_users = false;       // a gather context outside the engine's calls has it
    bool is_in_context = false;  // the same, as its bracket says
    bool is_returned = false;    // by a module; none but a step frees it
    bool is_operations = false;  // an operation of a backward has gathered it for itself
    friend bool operator==(const State&, const State&) = default;
  };
  // A fetch that is under way.
  struct Fetch {
    Id module;
    ModuleCall call;
    bool is_forward;
    std::set<Id> before = {};  // not free as it began
    std::vector<Ids> gathers = {};
    std::uint64_t lc = 0;
  };
  // The end of a module that is under way.
  struct Release {
    Id module;
    std::set<Id> expected = {};
    std::set<Id> freed = {};
    std::set<Id> soon = {};  // stays for a use within the reuse distance, or taken ahead
    bool is_judged = true;
  };

  // residency.cpp
  void see_call(const HookEvent& event);
  void see_context(const HookEvent& event);
  void see_external(const HookEvent& event);
  void see_invalidation(const HookEvent& event);
  void see_return(const HookEvent& event);
  void see_gather_begin(const HookEvent& event);
  void see_gather_end(const HookEvent& event);
  void see_gather_outside(const HookEvent& event, const Ids& ids);
  void see_partition(const HookEvent& event);
  void see_forward(const HookEvent& event);
  void end_forward(const HookEvent& event);
  void see_checkpoint(const HookEvent& event);
  void see_transform(const HookEvent& event);
  void see_mark(const HookEvent& event);
  void end_task(const HookEvent& event);
  Ids ids_of(const HookEvent& event);
  Freedom why_lost() const;
  void count_time(const HookEvent& event);

  // residency_fetch.cpp
  void begin_fetch(const HookEvent& event);
  void end_fetch(const HookEvent& event);
  void adopt_externals(const Fetch& fetch);
  std::vector<Ids> judged_gathers(const Fetch& fetch) const;
  void merge_kept(const Fetch& fetch, std::vector<Ids>& gathers) const;
  void judge_kept(const Fetch& fetch, const std::set<Id>& gathered);
  void judge_needed(const Fetch& fetch, std::vector<Ids>& gathers, std::set<Id>& present);
  void judge_ahead(const Fetch& fetch, const std::vector<Ids>& gathers,
                   const std::set<Id>& present);
  void judge_reclaimed(const Fetch& fetch, std::set<Id>& present);
  void judge_comparisons(const HookEvent& event);
  void judge_module(const HookEvent& event, Id module);
  void judge_given_up(const HookEvent& event, Id module);

  // residency_release.cpp
  void end_backwards();
  void begin_release(const HookEvent& event);
  void end_release(const HookEvent& event);
  void judge_operations(const HookEvent& event);
  void judge_all_free(const HookEvent& event, Rule rule, std::string_view when);
  void judge_under_way(const HookEvent& event);
  void judge_abandoned(const HookEvent& event);
  void judge_persistent(const HookEvent& event, std::string_view when);
  bool may_stay(Id id) const;
  bool is_left_open(Id id) const;

  bool is_judging(const HookEvent& event) const;
  bool is_free(Id id) const { return states_[id].where == Where::free; }
  std::int64_t elements(Id id) const { return parameter(id).elements; }
  std::int64_t sum(const std::set<Id>& ids) const;
  std::string list(const std::set<Id>& ids) const;

  std::vector<State> states_;
  Uses uses_;
  FetchOrder order_;
  Retained retained_;
  GatherLog gathers_;
  bool is_order_lost_ = false;
  std::optional<Freedom> failure_;  // why events are not judged until the next root's forward
  std::optional<Fetch> fetch_;
  std::set<Id> reclaimed_;  // by the open fetch, without a collective
  std::optional<Release> release_;
  std::vector<std::size_t> depths_;     // of forwards, where open recomputes began
  std::set<Id> abandoned_;              // parameters of modules that an exception has ended
  std::optional<Id> expected_module_;   // whose forward has begun without its fetch
  std::optional<FetchOrder> given_up_;  // by the fetch that comes, which decides whether rightly
  std::set<Id> under_way_;              // by the order that is given up
  bool has_new_external_ = false;       // and no fetch or invalidation since
  std::vector<Ids> contexts_;           // of the user, open
  int transforms_ = 0;
  bool is_alone_ = false;          // the outermost transform, in no call and no task
  std::set<Id> before_transform_;  // not free as it began
  bool is_behind_transform_ = false;
  bool has_failed_ = false;      // the last outermost graph task
  bool has_reset_ = false;       // in the load that is under way
  bool has_root_ended_ = false;  // in the open forward
  std::set<Id> freed_at_end_;    // of the open forward
  int step_gathers_ = 0;         // in the open z3.post_step
  std::int64_t forwards_ = 0;    // outermost ones, also past the engine
  int resets_ = 0;               // of the order, since the root's last fetch
  int comparisons_ = 0;          // broadcasts in the open coord.reset_step
};

}  // namespace zeroproof::reference
