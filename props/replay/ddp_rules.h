#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"
#include "model/names.h"
#include "props/replay/diagnosis.h"
#include "props/replay/rule_findings.h"

namespace zeroproof {

// What DDP's reducer promises (autograd_semantics 18): buckets are launched in the order of their
// numbers, each once a backward, each after the last gradient in it; all of them before the
// outermost task ends; and what a step uses has been reduced. Feed the events of one rank in order.
class DdpRules {
 public:
  // `names` must outlive it.
  explicit DdpRules(const NameTable& names) : names_(names), findings_(names, 12) {}

  void declare_param(std::string_view name) { declared_.emplace(name); }
  // `line` is the event's line.
  void on_event(const HookEvent& event, std::string_view line);
  void finish(std::vector<Diagnosis>& out) { findings_.take(out); }

 private:
  void begin_backward(const HookEvent& event);
  void end_backward(const HookEvent& event);
  void on_bucket(const HookEvent& event);
  void on_gradient(const HookEvent& event);
  void on_exception(const HookEvent& event);
  void on_step(const HookEvent& event);
  std::vector<std::string> unready_params() const;

  const NameTable& names_;
  RuleFindings findings_;
  std::set<std::string, std::less<>> declared_;
  std::set<NameId> launched_;  // parameters of launched buckets
  std::set<NameId> arrived_;   // gradients of this backward
  std::int64_t next_bucket_ = 0;
  std::int32_t depth_ = 0;  // open graph tasks
  GraphTaskId root_;
  bool has_last_ = false;     // the last bucket was launched
  bool tells_last_ = false;   // the recording says which bucket is the last
  bool is_unsynced_ = false;  // this backward runs under no_sync
  bool is_next_unsynced_ = false;
  bool has_buckets_ever_ = false;
  std::uint64_t unsynced_lc_ = 0;  // of a backward whose gradients no reduction has followed
};

}  // namespace zeroproof
