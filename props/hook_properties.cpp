#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P6: at most one query a phase, and exactly one when the backward has a single graph task.
class CountOncePerPhase final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::count) mark_applicable();
    if (fact.kind != FactKind::backward_done || !fact.tally->is_user_backward) return;
    const BackwardTally& tally = *fact.tally;
    if (fact.has_raised || tally.works == 0) return;
    has_counted_ = has_counted_ || tally.counts > 0;
    const bool is_single = tally.own_works == tally.works;
    const bool is_missing = is_single && tally.counts == 0 && has_counted_;
    if (tally.counts <= tally.phases && !is_missing) return;
    report(place(*fact.event),
           fmt::format("{} of {} asked for the expected count {} times in {} phase{}",
                       task_name(tally), engine_name(fact.engine), tally.counts, tally.phases,
                       tally.phases == 1 ? "" : "s"));
  }

 protected:
  void append_memory(std::string& bytes) const override { append_bytes(bytes, has_counted_); }

 private:
  bool has_counted_ = false;  // a policy that never asks is not required to ask once
};

// P13, in fallback mode only: with a callback the epilogue does not wait for the count.
class ExpectedHooksFire final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind != FactKind::backward_done || fact.has_raised) return;
    const BackwardTally& tally = *fact.tally;
    if (!tally.is_user_backward && !tally.is_under_user_backward) return;
    if (tally.is_in_callback_mode || tally.expected_max == 0) return;
    mark_applicable();
    if (tally.expected_max <= tally.own_works) return;
    report(place(*fact.event),
           fmt::format("{} of {} expected {} gradient hooks but only {} fired", task_name(tally),
                       engine_name(fact.engine), tally.expected_max, tally.own_works));
  }

 protected:
  void append_memory(std::string&) const override {}
};

// P15. The second half is a hazard: a backward over outputs whose prologue ran before.
class PrologueOnce final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::prologue_begin) see_prologue(fact);
    if (fact.kind == FactKind::task_end)
      std::erase_if(prologues_, [&](const auto& known) { return known.first.task == fact.task; });
    if (fact.kind != FactKind::backward_done || fact.has_raised) return;
    const BackwardTally& tally = *fact.tally;
    if (!tally.is_user_backward || !tally.is_root || tally.prologues > 0) return;
    report_latent(place(*fact.event), fmt::format("{} reached outputs of {} but ran no prologue",
                                                  task_name(tally), engine_name(fact.engine)));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [key, forwards] : prologues_) {
      append_bytes(bytes, key.engine.value);
      append_bytes(bytes, key.task);
      append_bytes(bytes, static_cast<std::int64_t>(forwards.size()));
      for (const std::int64_t forward : forwards) append_bytes(bytes, forward);
    }
  }

 private:
  struct Key {
    EngineId engine;
    std::int64_t task = -1;  // serial
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // Which forward a prologue belongs to is known in simulation (index); a recording only bounds
  // the number of prologues by that of the forwards.
  void see_prologue(const Fact& fact) {
    if (fact.task < 0) return;
    mark_applicable();
    std::vector<std::int64_t>& forwards = prologues_[{fact.engine, fact.task}];
    const std::int64_t forward = fact.event->index;
    const bool is_known = forward >= 0;
    const bool is_second =
        is_known ? std::find(forwards.begin(), forwards.end(), forward) != forwards.end()
                 : static_cast<std::int32_t>(forwards.size()) >= fact.forwards &&
                       fact.forwards < kForwardsMax;
    if (is_second)
      report(place(*fact.event),
             fmt::format("graph task {} ran the prologue of {} a second time for one forward at lc "
                         "{}",
                         fact.event->graph_task.value, engine_name(fact.engine), fact.event->lc));
    else if (forwards.size() < static_cast<std::size_t>(kForwardsMax))
      forwards.push_back(forward);
  }

  std::map<Key, std::vector<std::int64_t>> prologues_;
};

// P16. Which parameters the loss also reaches past the outputs is declared, see ProtocolView.
class PrologueBeforeHooks final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::work_begin && fact.task >= 0 && fact.user_task < 0 &&
        !fact.is_bypassing)
      early_.try_emplace({fact.engine, fact.task}, place(*fact.event));
    if (fact.kind == FactKind::task_end)
      std::erase_if(early_, [&](const auto& work) { return work.first.second == fact.task; });
    if (fact.kind != FactKind::prologue_begin || fact.task < 0) return;
    mark_applicable();
    const auto work = early_.find({fact.engine, fact.task});
    if (work == early_.end()) return;
    report(work->second, fmt::format("a gradient hook of {} ran at lc {} before the prologue of "
                                     "graph task {} at lc {}",
                                     engine_name(fact.engine), work->second.lc,
                                     fact.event->graph_task.value, fact.event->lc));
    early_.erase(work);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    append_bytes(bytes, static_cast<std::int64_t>(early_.size()));
    for (const auto& [key, place] : early_) {
      append_bytes(bytes, key.first.value);
      append_bytes(bytes, key.second);
    }
  }

 private:
  std::map<std::pair<EngineId, std::int64_t>, Place> early_;  // by engine and task
};

}  // namespace

std::unique_ptr<Monitor> make_count_once_per_phase(const Monitor::Context& context) {
  return std::make_unique<CountOncePerPhase>(context);
}
std::unique_ptr<Monitor> make_expected_hooks_fire(const Monitor::Context& context) {
  return std::make_unique<ExpectedHooksFire>(context);
}
std::unique_ptr<Monitor> make_prologue_once(const Monitor::Context& context) {
  return std::make_unique<PrologueOnce>(context);
}
std::unique_ptr<Monitor> make_prologue_before_hooks(const Monitor::Context& context) {
  return std::make_unique<PrologueBeforeHooks>(context);
}

}  // namespace zeroproof
