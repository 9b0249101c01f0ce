#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/job_facts.h"
#include "props/replay/rule_findings.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// What an optimizer holds against what is trained, and whether gradients of one step flow into the
// next. Needs the records of hooktrace 1.1. Feed the events of one rank in order.
class OptimizerRules {
 public:
  // Both must outlive it.
  OptimizerRules(const NameTable& names, const JobFacts& facts)
      : names_(names), facts_(facts), findings_(names, 0) {}

  void on_event(const HookEvent& event);
  void finish(std::vector<Diagnosis>& out);

 private:
  struct Optimizer {
    std::uint64_t steps = 0;
    std::int64_t grads_max = -1;  // parameters with a gradient; -1: not recorded
    HookEvent first_step;
  };
  struct Window {  // of one model, between two steps
    HookEvent kept_at;
    std::string kept;  // how many gradients; empty: none
    std::uint64_t kept_in_a_row = 0;
  };

  void on_mark(const HookEvent& event);
  void on_step(const HookEvent& event);
  bool judges_gradients() const;
  void find_other_parameters();
  void find_unheld(const std::vector<std::string>& unheld);
  void find_untrained();
  void find_vectors_only();
  std::vector<std::string> unheld_params() const;

  const NameTable& names_;
  const JobFacts& facts_;
  RuleFindings findings_;
  std::set<NameId> trained_;  // got a gradient
  std::set<std::string, std::less<>> frozen_later_;
  std::map<std::int64_t, Optimizer> optimizers_;  // by id
  std::map<EngineId, Window> windows_;
  bool is_compiled_ = false;       // some hooks are inside compiled code
  bool has_unnamed_step_ = false;  // a step that names no optimizer
};

}  // namespace zeroproof
