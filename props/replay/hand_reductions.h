#pragma once

#include <cstdint>
#include <set>

#include "props/replay/job_facts.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Data parallelism by hand: parameters whose gradient an all-reduce names between every backward
// and the step that follows. All ranks of the group are meant to hold the same. Keeps
// JobFacts::hand_reduced; feed the events of one rank in order.
class HandReductions {
 public:
  // Both must outlive it.
  HandReductions(const NameTable& names, JobFacts& facts) : names_(names), facts_(facts) {}

  void on_event(const HookEvent& event);

 private:
  void on_collective(const HookEvent& event);
  void on_step();

  const NameTable& names_;
  JobFacts& facts_;
  std::set<NameId> open_;       // gradients of this window that are not reduced
  std::set<NameId> abandoned_;  // a step used their gradient unreduced
};

}  // namespace zeroproof
