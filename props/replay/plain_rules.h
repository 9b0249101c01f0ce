#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/rule_findings.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// What autograd itself promises about callbacks (docs/spec/autograd.md 10): they run after the last
// gradient hook of their graph task, in the order of queueing, before the task ends; when a node
// failed, they do not run. Feed the events of one rank in order.
class PlainRules {
 public:
  // `names` must outlive it.
  explicit PlainRules(const NameTable& names) : names_(names), findings_(names, 0) {}

  void on_event(const HookEvent& event);
  void finish(std::vector<Diagnosis>& out) { findings_.take(out); }

 private:
  struct Task {
    std::vector<NameId> queued;  // labels, in order
    std::size_t begun = 0;
    bool is_in_callbacks = false;
  };

  void on_begin(const HookEvent& event);
  void on_end(const HookEvent& event);

  const NameTable& names_;
  RuleFindings findings_;
  std::map<GraphTaskId, Task> tasks_;
};

}  // namespace zeroproof
