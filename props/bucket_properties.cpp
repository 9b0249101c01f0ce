// What is in a bucket, and when: P43, P44, P49, P51, P54, P86.
#include <fmt/format.h>

#include <map>
#include <set>

#include "props/mark.h"
#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

void append_params(std::string& bytes, const std::set<NameId>& params) {
  append_bytes(bytes, static_cast<std::int64_t>(params.size()));
  for (const NameId param : params) append_bytes(bytes, param.value);
}

bool is_add(const Fact& fact) {
  return fact.kind == FactKind::other && fact.event->kind == EventKind::bucket_add;
}

bool is_flush(const Fact& fact) {
  return fact.kind == FactKind::other && fact.event->kind == EventKind::bucket_flush;
}

// P43. `mark reduce_bucket_size:N` gives the size.
class BucketSizeKept final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.event->kind == EventKind::mark)
      if (const auto size = mark_number(text(fact.event->name), "reduce_bucket_size"))
        sizes_[fact.engine] = static_cast<std::int64_t>(*size);
    if (!is_flush(fact)) return;
    const auto size = sizes_.find(fact.engine);
    if (size == sizes_.end() || fact.event->numel < 0) return;
    mark_applicable();
    if (fact.event->numel <= size->second || fact.event->params.size() <= 1) return;
    report(place(*fact.event),
           fmt::format("{} parameters of {} elements were flushed from a bucket of {} at lc {}",
                       fact.event->params.size(), fact.event->numel, size->second, fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, size] : sizes_) append_bytes(bytes, size + engine.value);
  }

 private:
  std::map<EngineId, std::int64_t> sizes_;
};

// P44. A bucket.add that says dtype or group must find only its like in the bucket.
class BucketHoldsOneKind final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (is_add(fact)) {
      if (fact.event->name.is_none() && fact.event->group.is_none()) return;
      mark_applicable();
      waiting_[fact.event->param] = {fact.event->name, fact.event->group};
    }
    if (!is_flush(fact)) return;
    const Kind* first = nullptr;
    NameId first_param;
    for (const NameId param : fact.event->params) {
      const auto known = waiting_.find(param);
      if (known == waiting_.end()) continue;
      if (first == nullptr) {
        first = &known->second;
        first_param = param;
      }
      judge(fact, param, known->second, first_param, *first);
    }
    for (const NameId param : fact.event->params) waiting_.erase(param);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [param, kind] : waiting_) {
      append_bytes(bytes, param.value);
      append_bytes(bytes, kind.dtype.value);
      append_bytes(bytes, kind.group.value);
    }
  }

 private:
  struct Kind {
    NameId dtype;
    NameId group;
  };

  void judge(const Fact& fact, NameId param, const Kind& kind, NameId first_param,
             const Kind& first) {
    const bool is_of_flush =
        fact.event->name.is_none() || kind.dtype.is_none() || kind.dtype == fact.event->name;
    if (is_of_flush && kind.dtype == first.dtype && kind.group == first.group) return;
    report(
        place(*fact.event),
        fmt::format("one bucket of {} held {} ({} in {}) and {} ({} in {}) at lc {}",
                    text(fact.event->name), text(first_param), text(first.dtype), text(first.group),
                    text(param), text(kind.dtype), text(kind.group), fact.event->lc));
  }

  std::map<NameId, Kind> waiting_;
};

// P49, of what events show: every added gradient was flushed.
class BucketsEmptyAfterEpilogue final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (is_add(fact)) waiting_[fact.engine].insert(fact.event->param);
    if (is_flush(fact))
      for (const NameId param : fact.event->params) waiting_[fact.engine].erase(param);
    if (fact.kind == FactKind::step_end || fact.kind == FactKind::abandoned)
      waiting_.erase(fact.engine);  // both clear the buckets
    if (fact.kind != FactKind::grad_epilogue_end || fact.has_raised) return;
    mark_applicable();
    const std::set<NameId> left = std::move(waiting_[fact.engine]);
    waiting_.erase(fact.engine);
    if (left.empty()) return;
    report(place(*fact.event),
           fmt::format("{} gradients of {}, among them {}, were still in a bucket at lc {} when "
                       "the gradient epilogue ended",
                       left.size(), engine_name(fact.engine), text(*left.begin()), fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, params] : waiting_) {
      append_bytes(bytes, engine.value);
      append_params(bytes, params);
    }
  }

 private:
  std::map<EngineId, std::set<NameId>> waiting_;
};

// P51. `mark zero_sized_parameter` names those without elements.
class ZeroSizedInert final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    if (event.kind == EventKind::mark && text(event.name) == "zero_sized_parameter") {
      empty_.insert(event.param);
      mark_applicable();
    }
    if (is_add(fact) && (event.numel == 0 || empty_.contains(event.param)))
      report(place(event), fmt::format("{} has no elements and was put into a bucket at lc {}",
                                       text(event.param), event.lc));
    if (!is_flush(fact) && event.kind != EventKind::zparam_gather_begin) return;
    for (const NameId param : event.params)
      if (empty_.contains(param))
        report(place(event), fmt::format("{} has no elements and took part in a collective at lc "
                                         "{}",
                                         text(param), event.lc));
  }

 protected:
  void append_memory(std::string& bytes) const override { append_params(bytes, empty_); }

 private:
  std::set<NameId> empty_;
};

// P54. `mark grad_not_ready` stands inside the gradient hook of the parameter it names.
class NotReadyNeverBucketed final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const HookEvent& event = *fact.event;
    if (event.kind == EventKind::mark && text(event.name) == "grad_not_ready") {
      unready_.insert(event.param);
      mark_applicable();
    }
    if (fact.kind == FactKind::work_begin) unready_.erase(event.param);
    if (fact.kind == FactKind::work_end) unready_.erase(event.param);
    if (!is_add(fact) || !unready_.contains(event.param)) return;
    report(place(event), fmt::format("{} was bucketed at lc {} although its gradient was not ready",
                                     text(event.param), event.lc));
  }

 protected:
  void append_memory(std::string& bytes) const override { append_params(bytes, unready_); }

 private:
  std::set<NameId> unready_;
};

// P86, of what events show: a parameter is reduced in one dtype for as long as the run lasts.
class OneCommunicationDtype final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (!is_flush(fact) || fact.event->name.is_none()) return;
    mark_applicable();
    for (const NameId param : fact.event->params) {
      const NameId known = dtypes_.try_emplace(param, fact.event->name).first->second;
      if (known == fact.event->name) continue;
      report(place(*fact.event),
             fmt::format("{} was reduced as {} at lc {} and as {} before", text(param),
                         text(fact.event->name), fact.event->lc, text(known)));
      return;
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [param, dtype] : dtypes_) {
      append_bytes(bytes, param.value);
      append_bytes(bytes, dtype.value);
    }
  }

 private:
  std::map<NameId, NameId> dtypes_;
};

}  // namespace

std::unique_ptr<Monitor> make_bucket_size_kept(const Monitor::Context& context) {
  return std::make_unique<BucketSizeKept>(context);
}
std::unique_ptr<Monitor> make_bucket_holds_one_kind(const Monitor::Context& context) {
  return std::make_unique<BucketHoldsOneKind>(context);
}
std::unique_ptr<Monitor> make_buckets_empty_after_epilogue(const Monitor::Context& context) {
  return std::make_unique<BucketsEmptyAfterEpilogue>(context);
}
std::unique_ptr<Monitor> make_zero_sized_inert(const Monitor::Context& context) {
  return std::make_unique<ZeroSizedInert>(context);
}
std::unique_ptr<Monitor> make_not_ready_never_bucketed(const Monitor::Context& context) {
  return std::make_unique<NotReadyNeverBucketed>(context);
}
std::unique_ptr<Monitor> make_one_communication_dtype(const Monitor::Context& context) {
  return std::make_unique<OneCommunicationDtype>(context);
}

}  // namespace zeroproof
