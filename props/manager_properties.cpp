#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P4. A leak is noticed at the next forward, before its reset, or at the end; it is reported
// once, at the event it comes from when that is known.
class DepthZeroAtQuiet final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    remember_cause(fact);
    if (fact.manager == nullptr) return;
    Memory& memory = memory_[fact.engine];
    memory.depth = fact.manager->active_depth;
    memory.last = {fact.event->lc, fact.event->rank, {}};
    if (memory.depth == 0) memory.reported = 0;
    switch (fact.kind) {
      case FactKind::forward_begin:
      case FactKind::manager_call:
        if (!fact.event->manager || !fact.is_quiet) return;
        if (fact.kind == FactKind::manager_call && fact.method != Method::reset) return;
        mark_applicable();
        memory.depth_seen = memory.depth;
        memory.seen_at = fact.event->lc;
        memory.cause = cause_;
        return;
      case FactKind::manager_return:
        // The reset itself may notice the unfinished backward and say so (#8245).
        if (fact.method == Method::reset && fact.event->returned.value_or(false))
          memory.depth_seen = 0;
        return;
      case FactKind::abandoned:
        memory.depth_seen = 0;
        return;
      case FactKind::forward_end:
        if (memory.depth_seen > 0 && !(fact.has_raised && memory.depth == 0))
          leak(fact.engine, memory,
               fmt::format("when engine.forward at lc {} began", memory.seen_at));
        memory.depth_seen = 0;
        return;
      default:
        return;
    }
  }

  void finish(bool is_quiet) override {
    for (auto& [engine, memory] : memory_) {
      if (!is_quiet) continue;
      mark_applicable();
      memory.depth_seen = memory.depth;
      memory.cause = cause_;
      memory.last.event = "end";
      if (memory.depth > 0) leak(engine, memory, "at the end");
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, memory] : memory_) {
      append_bytes(bytes, (std::int64_t{engine.value} << 32) | memory.depth);
      append_bytes(bytes, (std::int64_t{memory.reported} << 32) | memory.depth_seen);
    }
  }

 private:
  struct Cause {
    Place place;
    std::string text;
  };
  struct Memory {
    std::int32_t depth = 0;
    std::int32_t depth_seen = 0;  // when the last forward began, until it is judged
    std::int32_t reported = 0;    // depth of the last report
    std::uint64_t seen_at = 0;
    Place last;
    std::optional<Cause> cause;
  };

  // The innermost exception of the last backward, and the hook it came from.
  void remember_cause(const Fact& fact) {
    if (fact.kind == FactKind::work_end && fact.has_raised) {
      raising_hook_ = place(*fact.event);
      raising_hook_->lc = fact.begin_lc;
      raising_hook_->event = fmt::format("engine.call grad_hook {}", text(fact.event->param));
    }
    if (fact.kind == FactKind::task_begin && fact.event->parent_call < 0) cause_.reset();
    if (fact.kind != FactKind::task_end) return;
    if (fact.has_raised && !cause_) {
      const std::string_view exception = text(fact.event->exception);
      cause_ = Cause{raising_hook_.value_or(place(*fact.event)), {}};
      cause_->text = raising_hook_
                         ? fmt::format(": {} raised in the gradient hook of {} at lc {}", exception,
                                       raising_hook_->event.substr(sizeof("engine.call grad_hook")),
                                       raising_hook_->lc)
                         : fmt::format(": {} left graph task {} at lc {}", exception,
                                       fact.event->graph_task.value, fact.event->lc);
    }
    raising_hook_.reset();
  }

  void leak(EngineId engine, Memory& memory, const std::string& when) {
    const std::int32_t depth = memory.depth_seen;
    if (memory.reported == depth) return;
    memory.reported = depth;
    std::string what =
        fmt::format("{} still counts {} active backward{} {}{}", engine_name(engine), depth,
                    depth == 1 ? "" : "s", when, memory.cause ? memory.cause->text : "");
    if (memory.cause)
      report_after_exception(memory.cause->place, std::move(what));
    else
      report(memory.last, std::move(what));
  }

  std::map<EngineId, Memory> memory_;
  std::optional<Place> raising_hook_;
  std::optional<Cause> cause_;
};

// P5.
class FreshAtFirstPrologue final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.engine.is_none()) return;
    if (fact.kind == FactKind::forward_begin) stage_[fact.engine] = Stage::armed;
    if (fact.kind == FactKind::prologue_begin && stage_[fact.engine] == Stage::armed)
      stage_[fact.engine] = Stage::inside;
    if (fact.kind == FactKind::prologue_end && stage_[fact.engine] == Stage::inside)
      stage_[fact.engine] = Stage::idle;
    if (fact.kind != FactKind::manager_return || fact.method != Method::enter) return;
    if (stage_[fact.engine] != Stage::inside) return;
    mark_applicable();
    const BackwardState& state = *fact.manager;
    if (state.hooks_fired == 0 && state.max_expected_hooks == 0 && state.remaining_hooks == 0)
      return;
    report(place(*fact.event),
           fmt::format("after the first prologue of a step {} has fired {}, expected {}, remaining "
                       "{} at lc {}",
                       engine_name(fact.engine), state.hooks_fired, state.max_expected_hooks,
                       state.remaining_hooks, fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, stage] : stage_)
      append_bytes(bytes, (std::int64_t{engine.value} << 32) | static_cast<std::int64_t>(stage));
  }

 private:
  enum class Stage : std::uint8_t { idle, armed, inside };
  std::map<EngineId, Stage> stage_;
};

// P8, a hazard: the flag says that a callback waits when none does.
class QueuedFlagBacked final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind != FactKind::manager_return || fact.manager == nullptr) return;
    mark_applicable();
    bool& is_stale = is_stale_[fact.engine];
    const bool was_stale = is_stale;
    is_stale = fact.manager->is_callback_queued && fact.live_callbacks == 0;
    if (is_stale && !was_stale)
      report_latent(place(*fact.event),
                    fmt::format("{} believes at lc {} that a callback is queued, but no live graph "
                                "task holds one",
                                engine_name(fact.engine), fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, is_stale] : is_stale_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, is_stale);
    }
  }

 private:
  std::map<EngineId, bool> is_stale_;
};

// P9, for policies that ask at all.
class RefreshBeforeReenter final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::work_begin) has_reentered_[fact.engine] = false;
    if (fact.kind == FactKind::work_end) has_reentered_.erase(fact.engine);
    if (fact.kind != FactKind::manager_call) return;
    const auto inside = has_reentered_.find(fact.engine);
    if (inside == has_reentered_.end()) return;
    if (fact.method == Method::reenter) inside->second = true;
    if (fact.method != Method::refresh) return;
    mark_applicable();
    if (inside->second)
      report(place(*fact.event),
             fmt::format("a hook of {} asked at lc {} whether to refresh after it had reentered",
                         engine_name(fact.engine), fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, has_reentered] : has_reentered_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, has_reentered);
    }
  }

 private:
  std::map<EngineId, bool> has_reentered_;
};

// P12. The flag is not in the manager's state; it shows when the post hook outside
// engine.backward returns without running the epilogue, after an engine.backward that raised.
// Without such a call, or where the depth ended the hook (0.19.6), it has another reason (N1).
class NotRunningAtQuiet final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::backward_end) note_end(fact);
    if (fact.kind == FactKind::post_hook_begin && !fact.is_in_backward)
      has_run_[fact.engine] = false;
    const auto inside = has_run_.find(fact.engine);
    if (inside == has_run_.end()) return;
    const bool is_mark = fact.event->kind == EventKind::mark;
    const bool is_skipped = is_mark && text(fact.event->name) == "manual_epilogue_skipped";
    if (fact.kind == FactKind::epilogue_begin || is_skipped) inside->second = true;
    if (fact.kind != FactKind::post_hook_end) return;
    mark_applicable();
    if (!inside->second && !fact.has_raised && aborted_.contains(fact.engine))
      report(place(*fact.event),
             fmt::format("the post hook of {} ran no epilogue at lc {}: the engine takes it for a "
                         "part of the engine.backward that raised",
                         engine_name(fact.engine), fact.event->lc));
    has_run_.erase(inside);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, has_run] : has_run_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, has_run);
    }
    for (const EngineId engine : aborted_) append_bytes(bytes, engine.value);
  }

 private:
  void note_end(const Fact& fact) {
    if (fact.has_raised)
      aborted_.insert(fact.engine);
    else
      aborted_.erase(fact.engine);
  }

  std::map<EngineId, bool> has_run_;
  std::set<EngineId> aborted_;  // their last engine.backward raised
};

// P14. Only the manager's own methods write its counters; the epilogue flag also belongs to the
// optimizer (1.3), so it may change between calls. What its own engine queues or runs as callback
// is its own doing too, and it is seen in no call: after a backward that raised, it stays. A task
// that raises takes along what every engine had in it.
class EnginesKeptApart final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::task_end && fact.has_raised)
      for (auto& [engine, memory] : memory_) memory.state.reset();
    if (fact.engine.is_none()) return;
    if (fact.kind == FactKind::callback_queued || fact.kind == FactKind::callback_begin)
      memory_[fact.engine].has_own_callback = true;
    if (!fact.event->manager) return;
    if (fact.kind != FactKind::manager_call && fact.kind != FactKind::manager_return) return;
    if (fact.engine_count > 1) mark_applicable();
    Memory& memory = memory_[fact.engine];
    BackwardState state = *fact.event->manager;
    state.ran_epilogue_this_backward = false;
    if (memory.has_own_callback && memory.state) {
      memory.state->is_callback_queued = state.is_callback_queued;
      memory.state->callback_graph_task = state.callback_graph_task;
    }
    memory.has_own_callback = false;
    if (fact.kind == FactKind::manager_call && memory.open_calls == 0 && memory.state &&
        *memory.state != state && fact.engine_count > 1)
      report(place(*fact.event),
             fmt::format("the manager of {} changed before lc {} without a call of its own: depth "
                         "{} to {}, fired {} to {}",
                         engine_name(fact.engine), fact.event->lc, memory.state->active_depth,
                         state.active_depth, memory.state->hooks_fired, state.hooks_fired));
    memory.open_calls += fact.kind == FactKind::manager_call ? 1 : -1;
    memory.open_calls = std::max(memory.open_calls, 0);
    memory.state = state;
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, memory] : memory_) {
      append_bytes(bytes, (std::int64_t{engine.value} << 32) | memory.open_calls);
      append_bytes(bytes, memory.has_own_callback);
      if (memory.state) append_bytes(bytes, *memory.state);
    }
  }

 private:
  struct Memory {
    std::int32_t open_calls = 0;
    bool has_own_callback = false;  // since the last call
    std::optional<BackwardState> state;
  };
  std::map<EngineId, Memory> memory_;
};

}  // namespace

std::unique_ptr<Monitor> make_depth_zero_at_quiet(const Monitor::Context& context) {
  return std::make_unique<DepthZeroAtQuiet>(context);
}
std::unique_ptr<Monitor> make_fresh_at_first_prologue(const Monitor::Context& context) {
  return std::make_unique<FreshAtFirstPrologue>(context);
}
std::unique_ptr<Monitor> make_queued_flag_backed(const Monitor::Context& context) {
  return std::make_unique<QueuedFlagBacked>(context);
}
std::unique_ptr<Monitor> make_refresh_before_reenter(const Monitor::Context& context) {
  return std::make_unique<RefreshBeforeReenter>(context);
}
std::unique_ptr<Monitor> make_not_running_at_quiet(const Monitor::Context& context) {
  return std::make_unique<NotRunningAtQuiet>(context);
}
std::unique_ptr<Monitor> make_engines_kept_apart(const Monitor::Context& context) {
  return std::make_unique<EnginesKeptApart>(context);
}

}  // namespace zeroproof
