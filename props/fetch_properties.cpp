// Fetching: P68, P69, P70, P71, P78 (zero_semantics 3.3, 3.5, 3.7, 3.13).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/state_bytes.h"
#include "props/mark.h"
#include "props/monitors.h"
#include "props/parameter_book.h"
#include "props/recorded_fetches.h"

namespace zeroproof {
namespace {

// P68. The pass of the fetch trace that runs is compared with the one that was recorded; the
// decision that they differ falls before the fetch that differs.
class TraceKeptForSameProgram final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    if (event.kind == EventKind::zmod_fetch) return see_fetch({event.name, event.is_forward});
    if (event.kind != EventKind::engine_call) return;
    if (fact.method == Method::reset_trace) {
      judge_invalidation({});
      if (fetches_.begin_pass()) mark_applicable();
    }
    if (fact.method == Method::invalidate_trace) {
      fetches_.invalidate();
      if (!fetches_.is_recording()) invalidated_ = place(event);
    }
  }

  void finish(bool) override { judge_invalidation({}); }

 protected:
  void append_memory(std::string& bytes) const override { fetches_.append_state(bytes); }

 private:
  using Fetch = RecordedFetches::Fetch;

  void see_fetch(const Fetch& fetch) {
    judge_invalidation(fetch);
    fetches_.add(fetch);
  }

  // `next` is what the program fetched after the trace was given up.
  void judge_invalidation(const Fetch& next) {
    const Place where = std::exchange(invalidated_, {});
    if (where.lc == 0 || next.first.is_none()) return;
    const std::vector<Fetch>& current = fetches_.current();
    const std::vector<Fetch>& recorded = fetches_.recorded();
    const std::size_t count = current.size();
    const bool is_same = count < recorded.size() && recorded[count] == next &&
                         std::equal(current.begin(), current.end(), recorded.begin());
    if (is_same)
      report(where, fmt::format("the fetch trace was given up at lc {}, but fetch {} of module {} "
                                "is the one that was recorded",
                                where.lc, count, text(next.first)));
  }

  RecordedFetches fetches_;
  Place invalidated_;
};

// P69, where `mark stage3_prefetch_bucket_size:N` stands and the sizes of parameters are known.
// What a fetch gathers and does not wait for is ahead. A gather's list is in the order of ids: what
// was taken last is what the recorded fetches need last; the list's last one where there are none.
class PrefetchBounded final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    switch (event.kind) {
      case EventKind::mark:
        return read_mark(text(event.name));
      case EventKind::zmod_fetch:
        return begin(fact);
      case EventKind::zparam_gather_begin:
        return add(fact);
      case EventKind::zparam_gather_end:
        return drop(fact);
      case EventKind::engine_call:
        if (fact.method == Method::reset_trace) orders_[fact.engine].fetches.begin_pass();
        if (fact.method == Method::invalidate_trace) orders_[fact.engine].fetches.invalidate();
        return;
      case EventKind::engine_return:
        if (fact.method == Method::pre_forward || fact.method == Method::pre_backward)
          judge(event.thread);
        return;
      default:
        return;
    }
  }

  void finish(bool) override {
    while (!fetches_.empty()) judge(fetches_.begin()->first);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    append_bytes(bytes, limit_);
    append_bytes(bytes, live_limit_);
    for (const auto& [engine, order] : orders_) {
      append_bytes(bytes, engine.value);
      order.fetches.append_state(bytes);
      for (const auto& [module, param] : order.uses)
        append_bytes(bytes, module.value - param.value);
    }
    for (const auto& [thread, fetch] : fetches_) {
      append_bytes(bytes, thread);
      append_bytes(bytes, fetch.module.value);
      for (const auto& [param, ahead] : fetch.ahead) append_bytes(bytes, param.value);
    }
  }

 private:
  static constexpr std::size_t kNever = SIZE_MAX;

  struct Order {  // of one engine
    RecordedFetches fetches;
    std::set<std::pair<NameId, NameId>> uses;  // module and parameter, as its fetch waited for it
  };
  struct Ahead {
    std::int64_t elements = 0;
    std::size_t place = 0;  // in the order in which they were taken; kNever: not known
  };
  struct Fetch {
    NameId module;
    std::int64_t room = 0;  // of the live parameters' budget
    std::vector<std::pair<NameId, Ahead>> ahead = {};
    Place place = {};  // of the last gather
  };

  void read_mark(std::string_view label) {
    if (const auto size = mark_number(label, "stage3_prefetch_bucket_size"))
      limit_ = static_cast<std::int64_t>(*size);
    if (const auto size = mark_number(label, "stage3_max_live_parameters"))
      live_limit_ = static_cast<std::int64_t>(*size);
  }

  static std::int64_t live(const Fact& fact) {
    std::int64_t elements = 0;
    for (const auto& [param, known] : fact.parameters->all())
      if (known.residence != Residence::not_available)
        elements += std::max<std::int64_t>(known.numel, 0);
    return elements;
  }

  void begin(const Fact& fact) {
    const HookEvent& event = *fact.event;
    orders_[fact.engine].fetches.add({event.name, event.is_forward});
    if (limit_ <= 0) return;
    judge(event.thread);
    fetches_[event.thread] = {.module = event.name, .room = live_limit_ - live(fact)};
  }

  bool is_used_by(const Fact& fact, NameId param, NameId module) const {
    const auto order = orders_.find(fact.engine);
    return fact.parameters->is_used_by(param, module) ||
           (order != orders_.end() && order->second.uses.contains({module, param}));
  }

  // The next recorded fetch that uses the parameter, counted from the one that runs.
  std::size_t next_use(const Fact& fact, NameId param) const {
    const RecordedFetches& fetches = orders_.at(fact.engine).fetches;
    if (fetches.recorded().empty()) return 0;
    for (std::size_t at = fetches.current().size(); at < fetches.recorded().size(); ++at)
      if (is_used_by(fact, param, fetches.recorded()[at].first)) return at;
    return kNever;
  }

  void add(const Fact& fact) {
    const auto open = fetches_.find(fact.event->thread);
    if (open == fetches_.end()) return;
    Fetch& fetch = open->second;
    fetch.place = place(*fact.event);
    for (const NameId param : fact.event->params) {
      if (is_used_by(fact, param, fetch.module)) continue;
      const ParameterBook::Parameter* known = fact.parameters->find(param);
      if (known == nullptr || known->numel < 0) return;
      fetch.ahead.push_back({param, {known->numel, next_use(fact, param)}});
    }
  }

  // The fetch waits for it: it is its module's, whatever its name says.
  void drop(const Fact& fact) {
    const auto open = fetches_.find(fact.event->thread);
    if (open == fetches_.end()) return;
    for (const NameId param : fact.event->params)
      if (std::erase_if(open->second.ahead, [&](const auto& it) { return it.first == param; }) > 0)
        orders_[fact.engine].uses.insert({open->second.module, param});
  }

  void judge(std::int32_t thread) {
    const auto open = fetches_.find(thread);
    if (open == fetches_.end()) return;
    const Fetch fetch = std::move(open->second);
    fetches_.erase(open);
    if (fetch.ahead.empty()) return;
    mark_applicable();
    std::int64_t elements = 0;
    Ahead last;
    std::int64_t unknown = 0;
    for (const auto& [param, ahead] : fetch.ahead) {
      elements += ahead.elements;
      unknown = std::max(unknown, ahead.place == kNever ? ahead.elements : 0);
      if (ahead.place != kNever && ahead.place >= last.place) last = ahead;
    }
    last.elements = std::max(last.elements, unknown);  // any of those may have come last
    const std::int64_t bound = std::min(limit_, fetch.room);
    if (elements == 0 || elements < bound + last.elements) return;
    report(fetch.place,
           fmt::format("the fetch of module {} gathered {} elements ahead up to lc {}; the bound "
                       "is {} and the last parameter's {}",
                       text(fetch.module), elements, fetch.place.lc, bound, last.elements));
  }

  std::int64_t limit_ = 0;  // 0: not told
  std::int64_t live_limit_ = INT64_MAX;
  std::map<EngineId, Order> orders_;
  std::map<std::int32_t, Fetch> fetches_;  // by thread
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
std::unique_ptr<Monitor> make_prefetch_bounded(const Monitor::Context& context) {
  return std::make_unique<PrefetchBounded>(context);
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
