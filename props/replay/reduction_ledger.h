#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/job_facts.h"
#include "props/replay/outermost_backward.h"
#include "props/replay/rule_findings.h"
#include "props/replay/unreduced_steps.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// DDP: what a step uses has been reduced over the ranks. The ledger holds the gradients that no
// collective has carried yet. A bucket takes its parameters off; a collective of the user's own
// those that it names, or all once collectives have carried enough bytes. Feed the events of one
// rank in order.
class ReductionLedger {
 public:
  // All must outlive it; `backward` has seen the event that the ledger sees.
  ReductionLedger(const NameTable& names, const JobFacts& facts, const OutermostBackward& backward)
      : names_(names), facts_(facts), backward_(backward), story_(names, 12) {}

  void on_event(const HookEvent& event);
  void finish(std::vector<Diagnosis>& out);

 private:
  struct Entry {
    bool is_unsynced = false;  // the last backward that added to it ran under no_sync
  };

  void begin_backward(const HookEvent& event);
  void end_backward(const HookEvent& event);
  void on_bucket(const HookEvent& event);
  void on_gradient(const HookEvent& event);
  void on_collective(const HookEvent& event);
  void on_forward(const HookEvent& event);
  void on_mark(const HookEvent& event);
  void on_zero_grad();
  void on_step(const HookEvent& event);
  void settle_closure(bool is_of_closure);
  void note_averaging();

  bool is_mapped(const HookEvent& bucket) const;
  bool is_replica(NameId param) const;
  std::vector<NameId> unreduced_of(const HookEvent& step) const;
  std::pair<std::string, std::string> cause_of(const std::vector<NameId>& left) const;
  bool is_hooked(const std::vector<NameId>& left) const;
  std::int64_t bytes_of(const std::vector<NameId>& params) const;

  const NameTable& names_;
  const JobFacts& facts_;
  const OutermostBackward& backward_;
  RuleFindings story_;
  UnreducedSteps steps_without_;
  std::map<NameId, Entry> open_;
  std::set<NameId> in_buckets_;         // ever
  std::set<NameId> reduced_;            // by buckets since the last step
  std::set<NameId> unfrozen_;           // a mark says so
  std::set<NameId> arrived_;            // gradients of the backward that runs
  std::set<std::int64_t> outer_calls_;  // models whose wrapper ran a forward since the last step
  std::set<std::int64_t> inner_calls_;  // models of which a part did
  bool has_unmapped_bucket_ = false;    // in the backward that runs
  bool is_closure_possible_ = false;    // the last step may stand before its own backward
  std::uint64_t backward_lc_ = 0;       // end of the last backward
  std::int64_t announced_bytes_ = -1;   // of a bucket whose collective comes next
  std::int64_t carried_bytes_ = 0;      // since the ledger was empty, buckets left out
  std::int64_t averaged_bytes_ = 0;     // by reductions after the last step and before a gradient
  std::uint64_t steps_ = 0;
};

}  // namespace zeroproof
