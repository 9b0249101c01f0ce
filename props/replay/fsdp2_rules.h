#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"
#include "model/names.h"
#include "props/replay/diagnosis.h"
#include "props/replay/rule_findings.h"

namespace zeroproof {

// What FSDP2 promises (autograd_semantics 19): a unit is unsharded before its gradients form, its
// reduce-scatter belongs to its post-backward, every unit that saw a pre-backward sees a
// post-backward, and the root's final callback runs once a backward, in the outermost task, after
// all of that and before a step. Feed the events of one rank in order.
class Fsdp2Rules {
 public:
  // `names` must outlive it.
  explicit Fsdp2Rules(const NameTable& names) : names_(names), findings_(names, 14) {}

  // `line` is the event's line.
  void on_event(const HookEvent& event, std::string_view line);
  void finish(std::vector<Diagnosis>& out) { findings_.take(out); }

 private:
  void on_unit(std::string_view moment, const std::string& unit, const HookEvent& event);
  void on_mark(const HookEvent& event);
  void on_collective(const HookEvent& event);
  void on_gradient(const HookEvent& event);
  void begin_backward(const HookEvent& event);
  void end_backward(const HookEvent& event);
  void on_final(const HookEvent& event);
  void tell(const HookEvent& event, std::string text);

  const NameTable& names_;
  RuleFindings findings_;
  std::set<NameId> sharded_;       // gathered once, partitioned since
  std::set<std::string> awaited_;  // pre-backward without post-backward
  std::int32_t depth_ = 0;
  std::int32_t open_post_backwards_ = 0;
  std::int32_t finals_ = 0;
  bool is_in_final_ = false;
  bool has_pre_backward_ = false;
  GraphTaskId root_;
};

}  // namespace zeroproof
