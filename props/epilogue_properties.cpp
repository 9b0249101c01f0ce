#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P1, judged when everything that belongs to the backward has happened. The pipeline engine runs
// backwards of its own and reduces what they leave once a step, by engine.allreduce_gradients
// outside any epilogue: in a recording a backward without epilogue waits for that until the step.
class EpilogueExactlyOnce final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    follow_reduction(fact);
    if (fact.kind == FactKind::step_begin) report_waiting(fact.engine);
    if (fact.kind != FactKind::backward_done || !fact.tally->is_user_backward) return;
    if (fact.has_raised) return;
    mark_applicable();
    const BackwardTally& tally = *fact.tally;
    if (tally.epilogues == 1) return;
    std::string what = fmt::format(
        "{} of {} completed at lc {} with {} epilogues after {} gradient hooks", task_name(tally),
        engine_name(fact.engine), tally.end_lc, tally.epilogues, tally.works);
    std::vector<Missing>& waiting = waiting_[fact.engine];
    const bool can_wait = scope() == Scope::trace && tally.epilogues == 0;
    if (can_wait && waiting.size() < kFindingsMax)
      waiting.push_back({place(*fact.event), std::move(what)});
    else
      report(place(*fact.event), std::move(what));
  }

  void finish(bool) override {
    while (!waiting_.empty()) report_waiting(waiting_.begin()->first);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, waiting] : waiting_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, static_cast<std::int64_t>(waiting.size()));
    }
  }

 private:
  struct Missing {
    Place place;
    std::string what;
  };

  void follow_reduction(const Fact& fact) {
    if (fact.kind == FactKind::epilogue_begin) is_in_epilogue_.insert(fact.engine);
    if (fact.kind == FactKind::epilogue_end) is_in_epilogue_.erase(fact.engine);
    const bool is_reduction = fact.event->kind == EventKind::engine_call &&
                              text(fact.event->name) == "engine.allreduce_gradients";
    if (is_reduction && !is_in_epilogue_.contains(fact.engine)) waiting_.erase(fact.engine);
  }

  void report_waiting(EngineId engine) {
    const auto waiting = waiting_.extract(engine);
    if (waiting.empty()) return;
    for (const Missing& missing : waiting.mapped()) report(missing.place, missing.what);
  }

  std::map<EngineId, std::vector<Missing>> waiting_;
  std::set<EngineId> is_in_epilogue_;
};

// P2: a hook after the first epilogue of its backward came too late for it.
class EpilogueAfterLastHook final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind != FactKind::backward_done || !fact.tally->is_user_backward) return;
    const BackwardTally& tally = *fact.tally;
    if (tally.works == 0 || tally.epilogues == 0) return;
    mark_applicable();
    if (tally.late_works == 0) return;
    Place where = place(*fact.event);
    where.lc = tally.late_lc;
    where.event = fmt::format("engine.call grad_hook {}", text(tally.late_param));
    report(where, fmt::format("the epilogue of {} ran after {} of {} gradient hooks of {}; {} at "
                              "lc {} is the first that came too late",
                              task_name(tally), tally.works - tally.late_works, tally.works,
                              engine_name(fact.engine), text(tally.late_param), tally.late_lc));
  }

 protected:
  void append_memory(std::string&) const override {}
};

// P3. A forward that runs inside a user backward (a recompute) may contain that backward's end.
class EpilogueOutsideForward final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.engine.is_none()) return;
    if (fact.kind == FactKind::forward_begin && !fact.is_in_forward)
      is_exempt_[fact.engine] = fact.user_task >= 0;
    if (fact.kind != FactKind::epilogue_begin) return;
    mark_applicable();
    if (!fact.is_in_forward || is_exempt_[fact.engine]) return;
    report(place(*fact.event), fmt::format("the epilogue of {} ran inside engine.forward at lc {}",
                                           engine_name(fact.engine), fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, is_exempt] : is_exempt_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, is_exempt);
    }
  }

 private:
  std::map<EngineId, bool> is_exempt_;
};

// P10.
class EpilogueExplicitOnce final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::backward_begin) explicit_[fact.engine] = 0;
    if (fact.kind == FactKind::epilogue_begin && fact.is_in_backward) see_epilogue(fact);
    if (fact.kind != FactKind::backward_end) return;
    const std::int32_t count = explicit_[fact.engine];
    explicit_.erase(fact.engine);
    if (fact.has_raised) return;
    mark_applicable();
    if (count != 1)
      report(place(*fact.event),
             fmt::format("engine.backward of {} returned at lc {} after {} explicit epilogues",
                         engine_name(fact.engine), fact.event->lc, count));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, count] : explicit_)
      append_bytes(bytes, (std::int64_t{engine.value} << 32) | count);
  }

 private:
  void see_epilogue(const Fact& fact) {
    mark_applicable();
    if (!fact.is_automatic) {
      explicit_[fact.engine] += 1;
      return;
    }
    report(place(*fact.event),
           fmt::format("an automatic epilogue of {} ran inside its engine.backward at lc {}",
                       engine_name(fact.engine), fact.event->lc));
  }

  std::map<EngineId, std::int32_t> explicit_;
};

// P17, for callbacks queued after a prologue whose task is still open.
class EpilogueInPrologueTask final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::prologue_begin) prologue_task_[fact.engine] = fact.task;
    if (fact.kind == FactKind::forward_begin && fact.user_task < 0)
      prologue_task_.erase(fact.engine);
    if (fact.kind == FactKind::task_end)
      std::erase_if(prologue_task_, [&](const auto& known) { return known.second == fact.task; });
    if (fact.kind != FactKind::callback_queued) return;
    const auto known = prologue_task_.find(fact.engine);
    if (known == prologue_task_.end()) return;
    mark_applicable();
    if (known->second == fact.task) return;
    report(place(*fact.event),
           fmt::format("the callback of {} was queued on graph task {} at lc {}, but its prologue "
                       "ran in another one",
                       engine_name(fact.engine), fact.event->graph_task.value, fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, task] : prologue_task_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, task);
    }
  }

 private:
  std::map<EngineId, std::int64_t> prologue_task_;  // serials
};

// P18.
class EpilogueNeedsDepth final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.manager == nullptr) return;
    const std::int32_t depth = fact.manager->active_depth;
    if (fact.kind == FactKind::epilogue_begin && fact.is_automatic) {
      mark_applicable();
      if (depth == 0)
        report(place(*fact.event),
               fmt::format("an automatic epilogue of {} began at lc {} with depth 0",
                           engine_name(fact.engine), fact.event->lc));
    }
    if (fact.kind == FactKind::manager_return && fact.method == Method::exit) {
      mark_applicable();
      if (depth < 0)
        report(place(*fact.event), fmt::format("exit_backward left {} at depth {} at lc {}",
                                               engine_name(fact.engine), depth, fact.event->lc));
    }
  }

 protected:
  void append_memory(std::string&) const override {}
};

}  // namespace

std::unique_ptr<Monitor> make_epilogue_exactly_once(const Monitor::Context& context) {
  return std::make_unique<EpilogueExactlyOnce>(context);
}
std::unique_ptr<Monitor> make_epilogue_after_last_hook(const Monitor::Context& context) {
  return std::make_unique<EpilogueAfterLastHook>(context);
}
std::unique_ptr<Monitor> make_epilogue_outside_forward(const Monitor::Context& context) {
  return std::make_unique<EpilogueOutsideForward>(context);
}
std::unique_ptr<Monitor> make_epilogue_explicit_once(const Monitor::Context& context) {
  return std::make_unique<EpilogueExplicitOnce>(context);
}
std::unique_ptr<Monitor> make_epilogue_in_prologue_task(const Monitor::Context& context) {
  return std::make_unique<EpilogueInPrologueTask>(context);
}
std::unique_ptr<Monitor> make_epilogue_needs_depth(const Monitor::Context& context) {
  return std::make_unique<EpilogueNeedsDepth>(context);
}

}  // namespace zeroproof
