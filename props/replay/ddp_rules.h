#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/job_facts.h"
#include "props/replay/outermost_backward.h"
#include "props/replay/rule_findings.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// What DDP's reducer promises (docs/spec/autograd.md 18): buckets are launched in the order of
// their numbers, each once a backward, each after the last gradient in it; all of them before the
// outermost task ends. Feed the events of one rank in order.
//
// A reducer rebuilds its buckets once: before its second backward, with a static graph before
// its third. Where a bucket names a parameter whose gradient has not come, the recording still
// speaks about the older layout, and what depends on the layout is not judged.
class DdpRules {
 public:
  // All must outlive it; `backward` has seen the event that the rules see.
  DdpRules(const NameTable& names, const JobFacts& facts, const OutermostBackward& backward)
      : names_(names), facts_(facts), backward_(backward), findings_(names, 12) {}

  // `line` is the event's line.
  void on_event(const HookEvent& event, std::string_view line);
  void finish(std::vector<Diagnosis>& out) { findings_.take(out); }

 private:
  // One a model; a recording with a single one need not number it.
  struct Reducer {
    std::set<NameId> launched;  // parameters of launched buckets, their gradients before them
    std::int64_t next_bucket = 0;
    bool has_last = false;    // the last bucket was launched
    bool tells_last = false;  // the recording says which bucket is the last
    bool is_mapped = true;    // the buckets hold what the recording says, as far as it shows
  };

  void begin_backward(const HookEvent& event);
  void end_backward(const HookEvent& event);
  void judge_end(const Reducer& reducer, const HookEvent& event);
  void on_bucket(const HookEvent& event, std::string_view line);
  void launch(Reducer& reducer, const HookEvent& event);
  void on_gradient(const HookEvent& event);
  void on_exception(const HookEvent& event);
  bool finds_unused(EngineId engine) const;
  std::vector<std::string> unready_params(const Reducer& reducer) const;

  const NameTable& names_;
  const JobFacts& facts_;
  const OutermostBackward& backward_;
  RuleFindings findings_;
  std::map<EngineId, Reducer> reducers_;
  std::set<NameId> arrived_;  // gradients of this backward
};

}  // namespace zeroproof
