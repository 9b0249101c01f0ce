// The optimizer step: P41, P55, P56, P60 (docs/spec/zero.md 2.11, 2.18).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "props/boundary_book.h"
#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P55. The counters are those that calls of the engine carry; the boundary is known where
// `mark gradient_accumulation_steps:N` stands, and the recording sees who sets it by hand.
class UpdateAtBoundary final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.engine.is_none()) return;
    Engine& engine = engines_[fact.engine];
    if (fact.event->kind == EventKind::mark) engine.boundary.read_mark(text(fact.event->name));
    count_backward(fact, engine);
    if (fact.event->kind == EventKind::engine_call && !engine.is_stepping)
      compare_counters(fact, engine);
    if (fact.kind == FactKind::step_begin) begin(fact, engine);
    if (fact.kind == FactKind::model_step && engine.is_stepping) engine.has_updated = true;
    if (fact.kind == FactKind::step_end) end(fact, engine);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, engine] : engines_) {
      append_bytes(bytes, id.value);
      engine.boundary.append_state(bytes);
      append_bytes(bytes, engine.calls * kBackwardsMax * 2 + engine.tasks);
      append_bytes(bytes, engine.is_stepping);
      append_bytes(bytes, engine.has_updated);
    }
  }

 private:
  static constexpr std::int64_t kBackwardsMax = 4;  // more make no difference

  struct Engine {
    BoundaryBook boundary;
    std::int64_t calls = 0;        // of engine.backward since the last step
    std::int64_t tasks = 0;        // that outputs of the engine led to, since the last step
    std::int64_t micro_step = -1;  // -1: not known
    std::int64_t global_step = -1;
    bool is_stepping = false;
    bool has_updated = false;
  };

  static void count_backward(const Fact& fact, Engine& engine) {
    if (fact.kind == FactKind::backward_end && engine.calls < kBackwardsMax) ++engine.calls;
    const bool is_task = fact.kind == FactKind::backward_done && fact.tally->is_user_backward;
    if (is_task && engine.tasks < kBackwardsMax) ++engine.tasks;
  }

  void compare_counters(const Fact& fact, Engine& engine) {
    const HookEvent& event = *fact.event;
    const bool is_known = engine.micro_step >= 0 && event.micro_step >= 0;
    if (!is_known) return;
    const bool is_same = event.micro_step == engine.micro_step &&
                         (event.global_step < 0 || event.global_step == engine.global_step);
    if (!is_same)
      report(place(event),
             fmt::format("{} is at micro-step {} and global step {} at lc {}, after its last step "
                         "it should be at {} and {}",
                         engine_name(fact.engine), event.micro_step, event.global_step, event.lc,
                         engine.micro_step, engine.global_step));
    engine.micro_step = -1;  // once a step
  }

  static void begin(const Fact& fact, Engine& engine) {
    engine.micro_step = fact.event->micro_step;
    engine.global_step = fact.event->global_step;
    engine.is_stepping = true;
    engine.has_updated = false;
  }

  void end(const Fact& fact, Engine& engine) {
    if (!engine.is_stepping) return;
    engine.is_stepping = false;
    const std::int64_t backwards = std::max(engine.calls, engine.tasks);
    engine.calls = engine.tasks = 0;
    if (fact.has_raised || engine.micro_step < 0) {
      engine.micro_step = -1;
      return;
    }
    mark_applicable();
    const BoundaryBook& boundary = engine.boundary;
    const bool is_unseen = engine.has_updated && boundary.is_set_out_of_sight(backwards);
    const std::optional<bool> is_boundary = boundary.is_boundary(engine.micro_step);
    engine.micro_step += 1;
    if (engine.has_updated) engine.global_step += 1;
    if (boundary.steps() <= 0 || !boundary.is_managed() || is_unseen) return;
    if (is_boundary == engine.has_updated) return;
    report(place(*fact.event),
           fmt::format("the step of {} that ended at lc {} {} the parameters at micro-step {} of "
                       "{}",
                       engine_name(fact.engine), fact.event->lc,
                       engine.has_updated ? "updated" : "did not update", engine.micro_step,
                       boundary.steps()));
  }

  std::map<EngineId, Engine> engines_;
};

// P56. Incomplete: it runs, or ended with an exception after a gradient hook, without a later
// forward, zero_grad or backward (docs/spec/zero/errors.md, E23).
class IncompleteStepRaises final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    switch (fact.kind) {
      case FactKind::work_begin:
        if (!fact.engine.is_none()) engines_[fact.engine].is_taking_part = true;
        return;
      case FactKind::task_end:
        if (fact.event->parent_call < 0) end_task(fact);
        return;
      case FactKind::forward_begin:
        if (fact.user_task < 0) forget(fact.engine);
        return;
      case FactKind::abandoned:  // before the end of its task
        engines_[fact.engine].is_taking_part = false;
        return forget(fact.engine);
      case FactKind::zero_grad:
        return forget(fact.engine);
      case FactKind::backward_done:
        if (!fact.has_raised) forget(fact.engine);
        return;
      case FactKind::step_begin:
        return begin(fact);
      case FactKind::step_end:
        return end(fact);
      default:
        return;
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, engine] : engines_) {
      append_bytes(bytes, id.value);
      append_bytes(bytes, engine.is_taking_part);
      append_bytes(bytes, engine.aborted_lc != 0);
      append_bytes(bytes, engine.has_to_raise);
    }
  }

 private:
  struct Engine {
    bool is_taking_part = false;
    std::uint64_t aborted_lc = 0;
    bool has_to_raise = false;
  };

  void end_task(const Fact& fact) {
    for (auto& [id, engine] : engines_) {
      if (engine.is_taking_part) engine.aborted_lc = fact.has_raised ? fact.event->lc : 0;
      engine.is_taking_part = false;
    }
  }

  void forget(EngineId id) {
    const auto known = engines_.find(id);
    if (known != engines_.end()) known->second.aborted_lc = 0;
  }

  void begin(const Fact& fact) {
    Engine& engine = engines_[fact.engine];
    engine.has_to_raise = engine.aborted_lc != 0 || engine.is_taking_part || fact.is_in_backward;
    if (engine.has_to_raise) mark_applicable();
  }

  void end(const Fact& fact) {
    Engine& engine = engines_[fact.engine];
    if (engine.has_to_raise && !fact.has_raised)
      report(
          place(*fact.event),
          fmt::format(
              "the step of {} that ended at lc {} accepted an incomplete backward{}",
              engine_name(fact.engine), fact.event->lc,
              engine.aborted_lc == 0 ? "" : fmt::format(", aborted at lc {}", engine.aborted_lc)));
    engine = Engine{};
  }

  std::map<EngineId, Engine> engines_;
};

// P41 and, of windows that begin with a zero_grad, P60: stage 3 copies the first gradient of a
// window into the partition buffer and adds the later ones.
class PartitionAddsWithinWindow final : public Monitor {
 public:
  PartitionAddsWithinWindow(const Context& context, bool is_after_zero_grad)
      : Monitor(context), is_after_zero_grad_(is_after_zero_grad) {}

  void observe(const Fact& fact) override {
    if (fact.engine.is_none()) return;
    Window& window = windows_[fact.engine];
    if (fact.kind == FactKind::model_step) window = Window{};
    const bool is_optimizers = !text(fact.event->name).starts_with("engine.");
    if (fact.kind == FactKind::zero_grad && is_optimizers) window = Window{{}, {}, true};
    if (fact.kind == FactKind::abandoned) window.written.clear();
    if (fact.kind == FactKind::grad_epilogue_end) {
      if (!fact.has_raised) window.completed.merge(window.written);
      window.written.clear();
    }
    if (fact.method != Method::partition_grads || fact.event->kind != EventKind::engine_call)
      return;
    if (fact.event->index >= 0) judge(fact, window);
    window.written.insert(fact.event->params.begin(), fact.event->params.end());
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, window] : windows_) {
      append_bytes(bytes, id.value);
      append_bytes(bytes, window.has_zero_grad);
      for (const auto* params : {&window.written, &window.completed}) {
        append_bytes(bytes, static_cast<std::int64_t>(params->size()));
        for (const NameId param : *params) append_bytes(bytes, param.value);
      }
    }
  }

 private:
  struct Window {
    std::set<NameId> written;    // by the backward that runs
    std::set<NameId> completed;  // by earlier ones
    bool has_zero_grad = false;
  };

  void judge(const Fact& fact, const Window& window) {
    if (is_after_zero_grad_ && !(window.has_zero_grad && window.completed.empty())) return;
    mark_applicable();
    const bool is_adding = fact.event->index > 0;
    for (const NameId param : fact.event->params) {
      const bool has_earlier = window.completed.contains(param);
      // Adding to a buffer that this window did not write is wrong unless something cleared it,
      // which is the case only if another parameter of the window was added already.
      if (is_adding ? has_earlier || !window.completed.empty() : !has_earlier) continue;
      report(
          place(*fact.event),
          fmt::format("{} of {} was {} the partition buffer at lc {}, but {} backward of this "
                      "window left a gradient there",
                      text(param), engine_name(fact.engine), is_adding ? "added to" : "copied over",
                      fact.event->lc, has_earlier ? "an earlier" : "no earlier"));
      return;
    }
  }

  bool is_after_zero_grad_;
  std::map<EngineId, Window> windows_;
};

}  // namespace

std::unique_ptr<Monitor> make_update_at_boundary(const Monitor::Context& context) {
  return std::make_unique<UpdateAtBoundary>(context);
}
std::unique_ptr<Monitor> make_incomplete_step_raises(const Monitor::Context& context) {
  return std::make_unique<IncompleteStepRaises>(context);
}
std::unique_ptr<Monitor> make_partition_adds_within_window(const Monitor::Context& context) {
  return std::make_unique<PartitionAddsWithinWindow>(context, false);
}
std::unique_ptr<Monitor> make_zero_grad_begins_window(const Monitor::Context& context) {
  return std::make_unique<PartitionAddsWithinWindow>(context, true);
}

}  // namespace zeroproof
