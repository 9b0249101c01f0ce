// Fetching: P68, P70, P71, P78 (docs/spec/zero.md 3.3, 3.5, 3.7, 3.13).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "props/monitors.h"
#include "props/parameter_book.h"
#include "props/recorded_fetches.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P68. The pass of an engine's fetch trace that runs is compared with the one that was recorded;
// the decision that they differ falls before the fetch that differs.
class TraceKeptForSameProgram final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    if (event.kind == EventKind::zmod_fetch)
      return see_fetch({event.name, event.is_forward}, traces_[fact.engine]);
    if (event.kind != EventKind::engine_call) return;
    if (fact.method == Method::reset_trace) {
      Trace& trace = traces_[fact.engine];
      judge_invalidation({}, trace);
      if (trace.fetches.begin_pass()) mark_applicable();
    }
    if (fact.method == Method::invalidate_trace) {
      Trace& trace = traces_[fact.engine];
      trace.fetches.invalidate();
      if (!trace.fetches.is_recording()) trace.invalidated = place(event);
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, trace] : traces_) {
      append_bytes(bytes, engine.value);
      trace.fetches.append_state(bytes);
    }
  }

 private:
  using Fetch = RecordedFetches::Fetch;
  struct Trace {
    RecordedFetches fetches;
    Place invalidated = {};  // lc 0: it was not
  };

  void see_fetch(const Fetch& fetch, Trace& trace) {
    judge_invalidation(fetch, trace);
    trace.fetches.add(fetch);
  }

  // `next` is what the program fetched after the trace was given up.
  void judge_invalidation(const Fetch& next, Trace& trace) {
    const Place where = std::exchange(trace.invalidated, {});
    if (where.lc == 0 || next.first.is_none()) return;
    const std::vector<Fetch>& current = trace.fetches.current();
    const std::vector<Fetch>& recorded = trace.fetches.recorded();
    const std::size_t count = current.size();
    const bool is_same = count < recorded.size() && recorded[count] == next &&
                         std::equal(current.begin(), current.end(), recorded.begin());
    if (is_same)
      report(where, fmt::format("the fetch trace was given up at lc {}, but fetch {} of module {} "
                                "is the one that was recorded",
                                where.lc, count, text(next.first)));
  }

  std::map<EngineId, Trace> traces_;
};

// P70, for the modules that `mark leaf_module:NAME` names.
class LeafGradientsOnce final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::other && fact.event->kind == EventKind::bucket_add &&
        fact.user_task >= 0)
      for (const std::string& leaf : fact.parameters->leaves())
        if (fact.parameters->is_below(fact.event->param, leaf))
          added_[{fact.engine, fact.user_task}][leaf][fact.event->param] += 1;
    if (fact.kind != FactKind::backward_done) return;
    const auto done = added_.find({fact.engine, fact.tally->task});
    if (done == added_.end()) return;
    const Leaves leaves = std::move(done->second);
    added_.erase(done);
    if (fact.has_raised) return;
    for (const auto& [leaf, counts] : leaves) judge(fact, leaf, counts);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [key, leaves] : added_)
      for (const auto& [leaf, counts] : leaves) {
        append_bytes(bytes, key.second);
        bytes += leaf;
        for (const auto& [param, count] : counts) append_bytes(bytes, param.value + count);
      }
  }

 private:
  using Counts = std::map<NameId, std::int32_t>;
  using Leaves = std::map<std::string, Counts>;

  void judge(const Fact& fact, const std::string& leaf, const Counts& counts) {
    mark_applicable();
    for (const auto& [param, known] : fact.parameters->all()) {
      if (!fact.parameters->is_below(param, leaf)) continue;
      const auto count = counts.find(param);
      const std::int32_t times = count == counts.end() ? 0 : count->second;
      if (times == 1) continue;
      report(place(*fact.event),
             fmt::format("{} of leaf module {} contributed {} gradients to {} of {}", text(param),
                         leaf, times, task_name(*fact.tally), engine_name(fact.engine)));
      return;
    }
  }

  std::map<std::pair<EngineId, std::int64_t>, Leaves> added_;  // by engine and task
};

// P71. While one thread fetches a leaf module, no other gathers for it or returns from its fetch.
class LeafFetchedByOneThread final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    if (event.kind == EventKind::zmod_fetch && !event.is_forward &&
        fact.parameters->is_leaf(event.name)) {
      mark_applicable();
      fetching_[event.thread] = event.name;
    }
    if (event.kind == EventKind::zparam_gather_begin) see_gather(fact);
    if (event.kind != EventKind::engine_return || fact.method != Method::pre_backward) return;
    const auto mine = fetching_.find(event.thread);
    if (mine == fetching_.end()) return;
    const NameId module = mine->second;
    fetching_.erase(mine);
    const auto gatherer = gatherer_.find(module);
    if (gatherer == gatherer_.end()) return;
    if (gatherer->second == event.thread)
      gatherer_.erase(gatherer);
    else if (!fact.has_raised)
      report(place(event),
             fmt::format("thread {} returned from the fetch of leaf module {} at lc {} while "
                         "thread {} was fetching it",
                         event.thread, text(module), event.lc, gatherer->second));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [thread, module] : fetching_) append_bytes(bytes, thread + module.value);
    for (const auto& [module, thread] : gatherer_) append_bytes(bytes, thread - module.value);
  }

 private:
  void see_gather(const Fact& fact) {
    const auto mine = fetching_.find(fact.event->thread);
    if (mine == fetching_.end()) return;
    const bool is_for_leaf = std::any_of(
        fact.event->params.begin(), fact.event->params.end(),
        [&](NameId param) { return fact.parameters->is_below(param, text(mine->second)); });
    if (!is_for_leaf) return;
    const auto [gatherer, is_first] = gatherer_.try_emplace(mine->second, fact.event->thread);
    if (is_first || gatherer->second == fact.event->thread) return;
    report(place(*fact.event),
           fmt::format("threads {} and {} both gathered for leaf module {} at lc {}",
                       gatherer->second, fact.event->thread, text(mine->second), fact.event->lc));
  }

  std::map<std::int32_t, NameId> fetching_;  // by thread
  std::map<NameId, std::int32_t> gatherer_;  // by module: the thread
};

// P78. After an abort inside a recompute the next complete backward runs its epilogue and leaves
// no parameter of stage 3 gathered.
class RetryAfterRecompute final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    if (event.kind == EventKind::ckpt_recompute_begin) open_ += 1;
    if (event.kind == EventKind::ckpt_recompute_end) {
      open_ = std::max(open_ - 1, 0);
      if (event.is_exceptional() && !event.is_early_stop) has_raised_ = true;
    }
    if (fact.kind == FactKind::task_end && event.parent_call < 0) {
      if (fact.has_raised && (open_ > 0 || has_raised_)) aborted_lc_ = event.lc;
      open_ = 0;
      has_raised_ = false;
    }
    if (fact.kind == FactKind::backward_done && !fact.has_raised && aborted_lc_ != 0) judge(fact);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    append_bytes(bytes, open_);
    append_bytes(bytes, has_raised_);
    append_bytes(bytes, aborted_lc_ != 0);
  }

 private:
  void judge(const Fact& fact) {
    if (!fact.tally->is_user_backward) return;
    mark_applicable();
    const std::uint64_t aborted_lc = std::exchange(aborted_lc_, 0);
    if (fact.tally->epilogues == 0)
      report(place(*fact.event), fmt::format("no epilogue of {} ran in the backward after the one "
                                             "whose recompute was aborted at lc {}",
                                             engine_name(fact.engine), aborted_lc));
    for (const auto& [param, known] : fact.parameters->all()) {
      const bool is_released = known.residence == Residence::not_available ||
                               known.residence == Residence::unknown || known.is_persistent ||
                               known.is_external;
      if (is_released && fact.parameters->holder(param).is_none()) continue;
      report(place(*fact.event),
             fmt::format("{} was not released by the backward after the one whose recompute was "
                         "aborted at lc {}",
                         text(param), aborted_lc));
      return;
    }
  }

  std::int32_t open_ = 0;
  bool has_raised_ = false;  // a recompute, with an exception
  std::uint64_t aborted_lc_ = 0;
};

}  // namespace

std::unique_ptr<Monitor> make_trace_kept(const Monitor::Context& context) {
  return std::make_unique<TraceKeptForSameProgram>(context);
}
std::unique_ptr<Monitor> make_leaf_gradients_once(const Monitor::Context& context) {
  return std::make_unique<LeafGradientsOnce>(context);
}
std::unique_ptr<Monitor> make_leaf_fetched_by_one_thread(const Monitor::Context& context) {
  return std::make_unique<LeafFetchedByOneThread>(context);
}
std::unique_ptr<Monitor> make_retry_after_recompute(const Monitor::Context& context) {
  return std::make_unique<RetryAfterRecompute>(context);
}

}  // namespace zeroproof
