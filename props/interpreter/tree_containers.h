#pragma once

#include <memory>
#include <utility>

#include "props/interpreter/tree.h"

namespace zeroproof::program {

// A Sequential as a module of its own. Both must outlive it.
std::shared_ptr<nn::Module> make_sequence(Tree& tree, const ModuleList& body);

// What a tree runs while the body of a checkpoint runs: the plan of the forward it belongs to.
class RecomputeScope {
 public:
  using Plan = std::shared_ptr<const ForwardPlan>;

  RecomputeScope(Plan& plan, Plan of_forward, bool& is_recomputing, bool is_now)
      : plan_(plan),
        plan_before_(std::exchange(plan, std::move(of_forward))),
        is_recomputing_(is_recomputing),
        was_recomputing_(std::exchange(is_recomputing, is_now)) {}
  ~RecomputeScope() {
    plan_ = plan_before_;
    is_recomputing_ = was_recomputing_;
  }
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  Plan& plan_;
  Plan plan_before_;
  bool& is_recomputing_;
  bool was_recomputing_;
};

}  // namespace zeroproof::program
