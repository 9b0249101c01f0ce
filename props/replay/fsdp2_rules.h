#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/outermost_backward.h"
#include "props/replay/rule_findings.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// What FSDP2 promises (docs/spec/autograd.md 19): a unit is unsharded before its gradients form,
// its reduce-scatter belongs to its post-backward, every unit that saw a pre-backward sees a
// post-backward before the step, and the final callback of each root runs once a backward, at the
// end of the task in which the backward of that root began. Feed the events of one rank in order.
class Fsdp2Rules {
 public:
  // Both must outlive it; `backward` has seen the event that the rules see.
  Fsdp2Rules(const NameTable& names, const OutermostBackward& backward)
      : names_(names), backward_(backward), findings_(names, 14) {}

  // `line` is the event's line.
  void on_event(const HookEvent& event, std::string_view line);
  // `is_complete`: the file has its end, so that what is missing is missing.
  void finish(bool is_complete, std::vector<Diagnosis>& out);

 private:
  // The final callbacks of one model in the backward that runs.
  struct Root {
    std::set<GraphTaskId> begun_in;  // tasks with a pre-backward
    HookEvent nested_final;
    bool has_nested_final = false;
    bool has_final = false;
  };
  using UnitKey = std::pair<EngineId, std::string>;

  void on_unit(std::string_view moment, const std::string& unit, const HookEvent& event);
  void on_mark(const HookEvent& event);
  void on_gather_or_partition(const HookEvent& event);
  void on_collective(const HookEvent& event);
  void on_gradient(const HookEvent& event);
  void begin_backward(const HookEvent& event);
  void end_backward(const HookEvent& event);
  void on_final(const std::string& unit, const HookEvent& event);
  void find_nested_final(const HookEvent& at);
  void on_step(const HookEvent& event);
  void find_not_resharded(const HookEvent& at);
  void tell(const HookEvent& event, std::string text);
  bool is_in_unit() const { return open_post_backwards_ > 0 || is_in_final_; }

  const NameTable& names_;
  const OutermostBackward& backward_;
  RuleFindings findings_;
  std::set<NameId> sharded_;          // gathered once, partitioned since
  std::set<UnitKey> awaited_;         // pre-backward without post-backward
  std::map<EngineId, Root> roots_;    // of the backward that runs
  std::map<UnitKey, int> finals_;     // of the backward that runs, by root
  std::set<NameId> reducing_groups_;  // on which units reduce-scatter
  std::set<NameId> shared_groups_;    // on which something else does too
  std::int32_t open_post_backwards_ = 0;
  bool is_in_final_ = false;
  std::set<EngineId> finalized_by_hand_;  // models whose post-backwards came after the backward
  std::set<EngineId> stepped_unsynced_;   // models reported since the last backward began
  HookEvent last_end_;                    // of an outermost backward
};

}  // namespace zeroproof
