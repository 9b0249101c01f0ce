#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P7. An exception that leaves the backward is a report of its abort: what its hooks did is not
// lost silently.
class NoLostWork final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    switch (fact.kind) {
      case FactKind::work_begin:
        mark_applicable();
        pending_[fact.engine][fact.event->param] = {place(*fact.event), fact.task,
                                                    fact.is_in_forward && fact.user_task < 0};
        return;
      case FactKind::epilogue_begin:
      case FactKind::abandoned:
        pending_.erase(fact.engine);
        return;
      case FactKind::task_end:
        end_task(fact);
        return;
      case FactKind::step_end:  // a refused step neither reduces nor loses gradients
        if (!fact.has_raised) lose(fact.engine, "the step", fact.event->lc);
        return;
      case FactKind::zero_grad:
        lose(fact.engine, "zero_grad", fact.event->lc);
        return;
      case FactKind::other:
        see_flush(fact);
        see_reduction(fact);
        return;
      default:
        return;
    }
  }

  void finish(bool is_quiet) override {
    if (!is_quiet) return;
    for (auto& [engine, works] : pending_)
      std::erase_if(works, [](const auto& work) { return work.second.is_ahead; });
    std::erase_if(pending_, [](const auto& engine) { return engine.second.empty(); });
    while (!pending_.empty()) lose(pending_.begin()->first, "the end", 0);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, works] : pending_) {
      append_bytes(bytes,
                   (std::int64_t{engine.value} << 32) | static_cast<std::int64_t>(works.size()));
      for (const auto& [param, work] : works) {
        append_bytes(bytes, param.value);
        append_bytes(bytes, work.task);
        append_bytes(bytes, work.is_ahead);
      }
    }
  }

 private:
  struct Work {
    Place place;
    std::int64_t task = -1;  // serial while the task is open
    bool is_ahead = false;   // of a forward that differentiates: its backward may never come
  };

  void end_task(const Fact& fact) {
    for (auto& [engine, works] : pending_) {
      if (fact.has_raised)
        std::erase_if(works, [&](const auto& work) { return work.second.task == fact.task; });
      for (auto& [param, work] : works)
        if (work.task == fact.task) work.task = -1;
    }
    std::erase_if(pending_, [](const auto& engine) { return engine.second.empty(); });
  }

  // A coalesced flush reduces outside any backward (docs/spec/zero.md 2.13).
  void see_flush(const Fact& fact) {
    if (fact.event->kind != EventKind::bucket_flush || !fact.is_quiet) return;
    const auto works = pending_.find(fact.engine);
    if (works == pending_.end()) return;
    for (const NameId param : fact.event->params) works->second.erase(param);
  }

  // The pipeline engine reduces what its backwards left, once a step.
  void see_reduction(const Fact& fact) {
    const bool is_reduction = fact.event->kind == EventKind::engine_call &&
                              text(fact.event->name) == "engine.allreduce_gradients";
    if (is_reduction && fact.is_quiet) pending_.erase(fact.engine);
  }

  void lose(EngineId engine, std::string_view before, std::uint64_t lc) {
    const auto works = pending_.find(engine);
    if (works == pending_.end()) return;
    Place first;
    std::vector<NameId> lost;
    for (const auto& [param, work] : works->second) {
      if (work.task >= 0) continue;
      if (lost.empty() || work.place.lc < first.lc) first = work.place;
      lost.push_back(param);
    }
    pending_.erase(works);
    if (lost.empty()) return;
    report(first, fmt::format("no epilogue of {} followed the gradient hooks of {} before {}{}",
                              engine_name(engine), names_of(lost), before,
                              lc == 0 ? "" : fmt::format(" at lc {}", lc)));
  }

  std::map<EngineId, std::map<NameId, Work>> pending_;
};

// P11. In exploration: the next forward must leave a manager as new, or raise. In a recording:
// the next backward must not trip over what the aborted one left (gradient_added_after_reduction,
// gradient_reduced_twice, parameter_twice_in_bucket).
class CleanAfterAbort final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    note_participants(fact);
    if (scope() == Scope::trace)
      observe_errors(fact);
    else
      observe_state(fact);
    note_abort(fact);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, memory] : memory_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, memory.is_taking_part);
      append_bytes(bytes, memory.has_aborted);
      append_bytes(bytes, memory.is_armed);
      append_bytes(bytes, memory.is_dirty);
      append_bytes(bytes, !memory.error.empty());
    }
  }

 private:
  struct Memory {
    bool is_taking_part = false;  // in the backward that runs now
    bool has_aborted = false;     // an earlier backward, not followed by a complete one
    bool is_armed = false;        // the forward after the abort runs
    bool is_dirty = false;        // and its reset left something
    bool is_stage_12 = false;
    Place place;
    std::string state_text;
    std::uint64_t aborted_at = 0;
    std::string error;  // what the aborted backward left, once it surfaced
  };

  void note_participants(const Fact& fact) {
    const bool takes_part = fact.kind == FactKind::work_begin ||
                            fact.kind == FactKind::output_hook ||
                            fact.kind == FactKind::prologue_begin;
    if (takes_part && !fact.engine.is_none()) memory_[fact.engine].is_taking_part = true;
  }

  void note_abort(const Fact& fact) {
    const bool is_over = fact.kind == FactKind::task_end && fact.event->parent_call < 0;
    if (!is_over) return;
    for (auto& [engine, memory] : memory_) {
      if (!memory.is_taking_part) continue;
      memory.is_taking_part = false;
      memory.has_aborted = fact.has_raised;
      memory.error.clear();
      if (fact.has_raised) mark_applicable();
      if (fact.has_raised) memory.aborted_at = fact.event->lc;
    }
  }

  void observe_state(const Fact& fact) {
    if (fact.engine.is_none()) return;
    Memory& memory = memory_[fact.engine];
    if (fact.kind == FactKind::forward_begin && memory.has_aborted) {
      memory.has_aborted = false;
      memory.is_armed = true;
      memory.is_dirty = false;
      if (fact.event->manager) look_at_state(fact, memory);  // V0 has no reset
    }
    if (!memory.is_armed) return;
    if (fact.kind == FactKind::manager_return && fact.method == Method::reset)
      look_at_state(fact, memory);
    if (fact.kind != FactKind::forward_end) return;
    memory.is_armed = false;
    if (memory.is_dirty && !fact.has_raised)
      report(memory.place,
             fmt::format("engine.forward after the aborted backward at lc {} left the manager of "
                         "{} with {}",
                         memory.aborted_at, engine_name(fact.engine), memory.state_text));
  }

  void look_at_state(const Fact& fact, Memory& memory) const {
    BackwardState state = *fact.manager;
    state.post_hooks = 0;
    memory.is_dirty = state != BackwardState{};
    memory.place = place(*fact.event);
    memory.state_text =
        fmt::format("depth {}, remaining {}, fired {}, expected {}", state.active_depth,
                    state.remaining_hooks, state.hooks_fired, state.max_expected_hooks);
  }

  void observe_errors(const Fact& fact) {
    if (fact.method == Method::process_gradients) memory_[fact.engine].is_stage_12 = true;
    if (fact.event->kind == EventKind::bucket_flush && !fact.engine.is_none())
      see_flush(fact, memory_[fact.engine]);
    const bool is_assertion = fact.has_raised && text(fact.event->exception) == "AssertionError";
    if (!is_assertion) return;
    if (fact.method == Method::process_gradients) {
      Memory& memory = memory_[fact.engine];
      if (memory.has_aborted && memory.error.empty()) {
        memory.place = place(*fact.event);
        memory.error = "a gradient that was already reduced (gradient_added_after_reduction)";
      }
    }
    if (fact.kind != FactKind::task_end || fact.event->parent_call >= 0) return;
    for (auto& [engine, memory] : memory_) {
      if (!memory.is_taking_part || !memory.has_aborted || memory.error.empty()) continue;
      report(memory.place,
             fmt::format("the backward after the one aborted at lc {} failed at lc {}: {} in {}",
                         memory.aborted_at, fact.event->lc, memory.error, engine_name(engine)));
    }
  }

  // The same parameter twice: the aborted backward's gradient is still in the bucket.
  void see_flush(const Fact& fact, Memory& memory) {
    if (!memory.has_aborted || !memory.error.empty()) return;
    std::set<NameId> seen;
    for (const NameId param : fact.event->params) {
      if (seen.insert(param).second) continue;
      memory.place = place(*fact.event);
      memory.error = fmt::format(
          "{} twice in one bucket ({})", text(param),
          memory.is_stage_12
              ? "already been reduced: gradient_added_after_reduction, gradient_reduced_twice"
              : "parameter_twice_in_bucket");
      return;
    }
  }

  std::map<EngineId, Memory> memory_;
};

}  // namespace

std::unique_ptr<Monitor> make_no_lost_work(const Monitor::Context& context) {
  return std::make_unique<NoLostWork>(context);
}
std::unique_ptr<Monitor> make_clean_after_abort(const Monitor::Context& context) {
  return std::make_unique<CleanAfterAbort>(context);
}

}  // namespace zeroproof
