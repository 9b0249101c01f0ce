// Gathering ahead: P69 (docs/spec/zero.md 3.3).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "props/mark.h"
#include "props/monitors.h"
#include "props/parameter_book.h"
#include "props/recorded_fetches.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P69, where `mark stage3_prefetch_bucket_size:N` stands and the sizes of parameters are known.
// What a fetch gathers and does not wait for is ahead. A gather's list is in the order of ids: any
// of those that the latest recorded fetch needs was taken last; any at all where this pass
// gave up what was there, and so had been passed over: a user's context did, or the end of a
// backward that another one follows. Where no fetches are recorded, the list's last one was.
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
      case EventKind::zparam_partition:
        return see_partition(fact);
      case EventKind::engine_call:
        calls_[event.thread].count(fact, 1);
        return see_call(fact);
      case EventKind::engine_return:
        calls_[event.thread].count(fact, -1);
        if (fact.method == Method::release_leftovers) orders_[fact.engine].is_releasing = false;
        if (fact.method != Method::pre_forward && fact.method != Method::pre_backward) return;
        if (fact.has_raised) return void(fetches_.erase(event.thread));  // it does not wait
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
      append_bytes(bytes, order.is_releasing);
      append_bytes(bytes, order.is_disturbed);
      for (const auto& [module, param] : order.uses) {
        append_bytes(bytes, module.value);
        append_bytes(bytes, param.value);
      }
    }
    for (const auto& [param, engine] : engines_) {
      append_bytes(bytes, param.value);
      append_bytes(bytes, engine.value);
    }
    for (const auto& [thread, calls] : calls_) {
      append_bytes(bytes, thread);
      append_bytes(bytes, calls.open);
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
    bool is_releasing = false;                 // at the end of a backward
    bool is_disturbed = false;                 // what it passed over in this pass may be gone
    std::set<std::pair<NameId, NameId>> uses;  // module and parameter, as its fetch waited for it
  };
  struct Calls {  // of a thread
    int open = 0;
    std::uint64_t lc = UINT64_MAX;  // of the last one: an event may be several facts

    void count(const Fact& fact, int change) {
      const bool is_users =  // around what the user does
          fact.method == Method::coalesce || fact.method == Method::gathered_parameters;
      if (is_users) return;
      if (fact.event->lc != lc) open += change;
      lc = fact.event->lc;
    }
  };
  struct Ahead {
    std::int64_t elements = 0;
    std::size_t use = 0;  // the recorded fetch that needs it; kNever: none is known to
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

  // Of the engine's own, as far as is known: after a gather that no event describes it is not.
  std::int64_t live(const Fact& fact) const {
    std::int64_t elements = 0;
    for (const auto& [param, known] : fact.parameters->all()) {
      const bool is_live = known.residence != Residence::not_available &&
                           known.residence != Residence::unknown &&
                           !is_of_another(param, fact.engine);
      if (is_live) elements += std::max<std::int64_t>(known.numel, 0);
    }
    return elements;
  }

  void see_call(const Fact& fact) {
    Order& order = orders_[fact.engine];
    if (fact.method == Method::reset_trace) {
      order.fetches.begin_pass();
      order.is_disturbed = false;
    }
    if (fact.method == Method::invalidate_trace) order.fetches.invalidate();
    if (fact.method == Method::release_leftovers) order.is_releasing = true;
  }

  void see_partition(const Fact& fact) {
    Order& order = orders_[fact.engine];
    order.is_disturbed |= order.is_releasing || calls_[fact.event->thread].open == 0;
  }

  bool is_of_another(NameId param, EngineId engine) const {
    const auto gathered = engines_.find(param);
    return gathered != engines_.end() && gathered->second != engine;
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

  // The next recorded fetch that uses the parameter, counted from the one that runs; where none is
  // recorded, its place in the list.
  std::size_t next_use(const Fact& fact, NameId param, std::size_t place) {
    const RecordedFetches& fetches = orders_[fact.engine].fetches;
    if (orders_[fact.engine].is_disturbed) return 0;
    if (fetches.recorded().empty()) return place;
    for (std::size_t at = fetches.current().size(); at < fetches.recorded().size(); ++at)
      if (is_used_by(fact, param, fetches.recorded()[at].first)) return at;
    return kNever;
  }

  void add(const Fact& fact) {
    for (const NameId param : fact.event->params) engines_[param] = fact.engine;
    const auto open = fetches_.find(fact.event->thread);
    if (open == fetches_.end()) return;
    Fetch& fetch = open->second;
    fetch.place = place(*fact.event);
    for (const NameId param : fact.event->params) {
      if (is_used_by(fact, param, fetch.module)) continue;
      const ParameterBook::Parameter* known = fact.parameters->find(param);
      if (known == nullptr || known->numel < 0) return;
      fetch.ahead.push_back({param, {known->numel, next_use(fact, param, fetch.ahead.size())}});
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
      unknown = std::max(unknown, ahead.use == kNever ? ahead.elements : 0);
      if (ahead.use == kNever || ahead.use < last.use) continue;
      last.elements = std::max(ahead.elements, ahead.use == last.use ? last.elements : 0);
      last.use = ahead.use;
    }
    last.elements = std::max(last.elements, unknown);  // any of those may have come last
    const std::int64_t bound = std::min(limit_, fetch.room);
    if (elements == 0 || elements < bound + last.elements) return;
    report(fetch.place,
           fmt::format("the fetch of module {} gathered {} elements ahead up to lc {}; the bound "
                       "is {} and the last parameter's {}",
                       text(fetch.module), elements, fetch.place.lc, bound, last.elements));
  }

  std::int64_t limit_ = 0;  // 0: not recorded
  std::int64_t live_limit_ = INT64_MAX;
  std::map<EngineId, Order> orders_;
  std::map<std::int32_t, Fetch> fetches_;  // by thread
  std::map<std::int32_t, Calls> calls_;    // by thread
  std::map<NameId, EngineId> engines_;     // which gathered it last
};

}  // namespace

std::unique_ptr<Monitor> make_prefetch_bounded(const Monitor::Context& context) {
  return std::make_unique<PrefetchBounded>(context);
}

}  // namespace zeroproof
