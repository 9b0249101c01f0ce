#include <fmt/format.h>

#include <map>

#include "model/state_bytes.h"
#include "props/monitors.h"

namespace zeroproof {
namespace {

// P1, judged when everything that belongs to the backward has happened.
class EpilogueExactlyOnce final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind != FactKind::backward_done || !fact.tally->is_user_backward) return;
    if (fact.has_raised) return;
    mark_applicable();
    const BackwardTally& tally = *fact.tally;
    if (tally.epilogues == 1) return;
    report(place(*fact.event),
           fmt::format("{} of {} completed at lc {} with {} epilogues after {} gradient hooks",
                       task_name(tally), engine_name(fact.engine), tally.end_lc, tally.epilogues,
                       tally.works));
  }

 protected:
  void append_memory(std::string&) const override {}
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
