// The life of a stage 3 parameter: P62, P64, P65, P66, P73, P76 (docs/spec/zero.md 3.1 to 3.8).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "props/monitors.h"
#include "props/parameter_book.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

std::string_view residence_name(Residence residence) {
  switch (residence) {
    case Residence::available:
      return "AVAILABLE";
    case Residence::inflight:
      return "INFLIGHT";
    case Residence::not_available:
      return "NOT_AVAILABLE";
    case Residence::unknown:
      break;
  }
  return "unknown";
}

// Which uses of parameters a property speaks about.
enum class Use : std::uint8_t {
  any,
  external,  // by a module that it was registered with
  repeated,  // by a backward of a module that was invoked again before it
};

// P62, P73, P76. A module computes after its fetch has returned, until its forward ended, and when
// a gradient of its parameters arrives. A state without an event is not judged.
class AvailableWhenUsed final : public Monitor {
 public:
  AvailableWhenUsed(const Context& context, Use use) : Monitor(context), use_(use) {}

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    switch (event.kind) {
      case EventKind::zmod_fetch:
        return begin_fetch(event);
      case EventKind::module_fwd_post:
        if (use_ != Use::repeated) judge_module(fact, event.name, "ended its forward");
        return;
      case EventKind::engine_return:
        if (fact.method == Method::pre_forward || fact.method == Method::pre_backward)
          end_fetch(fact);
        break;
      default:
        break;
    }
    if (use_ != Use::any) return;
    if (fact.kind == FactKind::work_begin) before_work_[event.thread] = holds(fact, event.param);
    if (fact.kind == FactKind::work_end) end_work(fact);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [thread, module] : fetching_) append_bytes(bytes, thread + module.value);
    for (const auto& [module, count] : invocations_) append_bytes(bytes, module.value + count);
    for (const auto& [thread, residence] : before_work_)
      append_bytes(bytes, static_cast<std::int64_t>(residence));
  }

 private:
  // A recompute is no second invocation: its own backward follows at once.
  void begin_fetch(const HookEvent& event) {
    fetching_[event.thread] = event.name;
    std::int32_t& count = invocations_[event.name];
    if (event.is_forward)
      count = event.graph_task.is_none() ? std::min(count + 1, 1000) : count;
    else if (count > 1)
      is_repeated_.insert(event.name);
  }

  void end_fetch(const Fact& fact) {
    const auto fetched = fetching_.find(fact.event->thread);
    if (fetched == fetching_.end()) return;
    const NameId module = fetched->second;
    fetching_.erase(fetched);
    const bool is_backward = fact.method == Method::pre_backward;
    if (!fact.has_raised &&
        (use_ != Use::repeated || (is_backward && is_repeated_.contains(module))))
      judge_module(fact, module, is_backward ? "began its backward" : "began its forward");
    if (!is_backward) return;
    invocations_[module] = std::max(invocations_[module] - 1, 0);
    if (invocations_[module] == 0) is_repeated_.erase(module);
  }

  void judge_module(const Fact& fact, NameId module, std::string_view when) {
    if (!fact.parameters->is_sharded() || fact.event->transforms > 0) return;
    for (const NameId param : fact.parameters->of_module(module)) {
      const Residence residence = fact.parameters->residence(param);
      const bool is_own = fact.parameters->find(param)->owner == text(module);
      if (residence == Residence::unknown || (use_ == Use::external && is_own)) continue;
      mark_applicable();
      if (residence == Residence::available) continue;
      report(place(*fact.event),
             fmt::format("{} was {} when module {} {} at lc {}", text(param),
                         residence_name(residence), text(module), when, fact.event->lc));
      return;
    }
  }

  static Residence holds(const Fact& fact, NameId param) {
    return fact.parameters->is_sharded() ? fact.parameters->residence(param) : Residence::unknown;
  }

  void end_work(const Fact& fact) {
    const auto known = before_work_.find(fact.event->thread);
    if (known == before_work_.end()) return;
    const Residence residence = known->second;
    before_work_.erase(known);
    if (residence == Residence::unknown || residence == Residence::available || fact.has_raised)
      return;
    report(place(*fact.event),
           fmt::format("the gradient of {} arrived at lc {} while it was {}",
                       text(fact.event->param), fact.begin_lc, residence_name(residence)));
  }

  Use use_;
  std::map<std::int32_t, NameId> fetching_;        // by thread
  std::map<std::int32_t, Residence> before_work_;  // by thread
  std::map<NameId, std::int32_t> invocations_;     // without their backward yet
  std::set<NameId> is_repeated_;
};

// P64. In the first pass persistent parameters are released like others (docs/spec/zero.md 3.6).
class PersistentStay final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::forward_begin && fact.user_task < 0) {
      is_at_rest_ = false;
      passes_ = std::min(passes_ + 1, 2);
    }
    if (fact.kind == FactKind::epilogue_end && !fact.has_raised) is_at_rest_ = true;
    const HookEvent& event = *fact.event;
    if (event.kind != EventKind::zparam_status || !event.is_persistent) return;
    if (!is_at_rest_ || passes_ < 2) return;
    mark_applicable();
    if (text(event.name) == "AVAILABLE") return;
    report(place(event), fmt::format("{} is persistent and {} at lc {} after the epilogue",
                                     text(event.param), text(event.name), event.lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    append_bytes(bytes, is_at_rest_);
    append_bytes(bytes, passes_);
  }

 private:
  bool is_at_rest_ = false;
  std::int32_t passes_ = 0;
};

// P65.
class PartitionedWhenFree final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.event->kind != EventKind::zparam_partition) return;
    mark_applicable();
    for (const NameId param : fact.event->params) {
      const Residence residence = fact.parameters->residence(param);
      const NameId holder = fact.parameters->holder(param);
      if (residence == Residence::inflight || residence == Residence::not_available)
        report(place(*fact.event),
               fmt::format("{} was partitioned at lc {} while it was {}", text(param),
                           fact.event->lc, residence_name(residence)));
      else if (!holder.is_none())
        report(place(*fact.event),
               fmt::format("{} was partitioned at lc {} while module {} used it", text(param),
                           fact.event->lc, text(holder)));
    }
  }

 protected:
  void append_memory(std::string&) const override {}
};

// P66. The registry refuses duplicates, and completes only what is in it.
class RegistryIsInflight final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    if (event.kind == EventKind::zparam_gather_begin)
      for (const NameId param : event.params)
        judge(fact, param,
              fact.parameters->residence(param) != Residence::inflight &&
                  fact.parameters->residence(param) != Residence::available);
    if (event.kind == EventKind::zparam_gather_end)
      for (const NameId param : event.params)
        if (fact.parameters->residence(param) != Residence::unknown)
          judge(fact, param, fact.parameters->residence(param) == Residence::inflight);
    if (event.kind != EventKind::zparam_status || !fact.parameters->is_sharded()) return;
    if (fact.parameters->residence(event.param) == Residence::unknown) return;
    const bool is_inflight = fact.parameters->residence(event.param) == Residence::inflight;
    judge(fact, event.param, is_inflight == (text(event.name) == "INFLIGHT"));
  }

 protected:
  void append_memory(std::string&) const override {}

 private:
  void judge(const Fact& fact, NameId param, bool is_right) {
    mark_applicable();
    if (is_right) return;
    report(place(*fact.event), fmt::format("{} was {} before {} at lc {}", text(param),
                                           residence_name(fact.parameters->residence(param)),
                                           event_kind_name(fact.event->kind), fact.event->lc));
  }
};

}  // namespace

std::unique_ptr<Monitor> make_available_when_used(const Monitor::Context& context) {
  return std::make_unique<AvailableWhenUsed>(context, Use::any);
}
std::unique_ptr<Monitor> make_external_stay(const Monitor::Context& context) {
  return std::make_unique<AvailableWhenUsed>(context, Use::external);
}
std::unique_ptr<Monitor> make_repeated_invocations(const Monitor::Context& context) {
  return std::make_unique<AvailableWhenUsed>(context, Use::repeated);
}
std::unique_ptr<Monitor> make_persistent_stay(const Monitor::Context& context) {
  return std::make_unique<PersistentStay>(context);
}
std::unique_ptr<Monitor> make_partitioned_when_free(const Monitor::Context& context) {
  return std::make_unique<PartitionedWhenFree>(context);
}
std::unique_ptr<Monitor> make_registry_is_inflight(const Monitor::Context& context) {
  return std::make_unique<RegistryIsInflight>(context);
}

}  // namespace zeroproof
