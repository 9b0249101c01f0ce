#include <fmt/format.h>

#include <map>
#include <set>

#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P63, from the statuses recorded between an epilogue and what comes after it. A parameter that
// was gathered since (a user's gather context) is whole on purpose.
class ReleasedAtEnd final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    const EventKind kind = fact.event->kind;
    if (fact.kind == FactKind::epilogue_end && !fact.has_raised) at_rest_[fact.engine].clear();
    if (fact.kind == FactKind::forward_begin || fact.kind == FactKind::backward_begin)
      at_rest_.erase(fact.engine);
    if (fact.kind == FactKind::task_begin) at_rest_.clear();
    if (fact.kind != FactKind::other) return;
    if (kind == EventKind::zparam_gather_end || kind == EventKind::zparam_partition)
      for (const NameId param : fact.event->params) note(param, kind);
    if (kind == EventKind::zparam_status) judge(fact);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, gathered] : at_rest_) {
      append_bytes(bytes,
                   (std::int64_t{engine.value} << 32) | static_cast<std::int64_t>(gathered.size()));
      for (const NameId param : gathered) append_bytes(bytes, param.value);
    }
  }

 private:
  void note(NameId param, EventKind kind) {
    for (auto& [engine, gathered] : at_rest_) {
      if (kind == EventKind::zparam_gather_end)
        gathered.insert(param);
      else
        gathered.erase(param);
    }
  }

  void judge(const Fact& fact) {
    const auto rest = at_rest_.find(fact.engine);
    if (rest == at_rest_.end() || fact.event->is_persistent) return;
    mark_applicable();
    if (rest->second.contains(fact.event->param)) return;
    const std::string_view status = text(fact.event->name);
    if (status == "NOT_AVAILABLE" && fact.event->active_modules == 0) return;
    report(place(*fact.event),
           fmt::format("{} of {} is {} and held by {} modules at lc {} after the epilogue",
                       text(fact.event->param), engine_name(fact.engine), status,
                       fact.event->active_modules, fact.event->lc));
  }

  std::map<EngineId, std::set<NameId>> at_rest_;  // gathered since the epilogue
};

// P74, a hazard: later discovery of external parameters registers on the wrong module.
class ModuleStackBalanced final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    switch (fact.kind) {
      case FactKind::module_push:
        depth_ += 1;
        has_modules_ = true;
        return;
      case FactKind::module_pop:
        depth_ -= 1;
        return;
      case FactKind::forward_begin:
        if (!fact.is_in_forward && fact.is_quiet) begin();
        return;
      case FactKind::forward_end:
        end(fact, fact.is_quiet && !fact.is_in_forward, "forward");
        return;
      case FactKind::task_begin:
        if (fact.event->parent_call < 0 && !fact.is_in_forward) begin();
        return;
      case FactKind::task_end:
        end(fact, fact.event->parent_call < 0 && !fact.is_in_forward, "backward");
        return;
      default:
        return;
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    append_bytes(bytes, depth_);
    append_bytes(bytes, is_open_);
    append_bytes(bytes, has_modules_);
  }

 private:
  void begin() {
    depth_ = 0;  // only the difference matters
    is_open_ = true;
  }

  void end(const Fact& fact, bool is_outermost, std::string_view what) {
    if (!is_outermost || !is_open_) return;
    is_open_ = false;
    if (has_modules_) mark_applicable();
    if (depth_ == 0) return;
    report_latent(place(*fact.event),
                  fmt::format("the forward module stack is {} deeper after the {} that ended at lc "
                              "{}",
                              depth_, what, fact.event->lc));
  }

  std::int64_t depth_ = 0;
  bool is_open_ = false;
  bool has_modules_ = false;
};

// P79. Only forward's reset may touch anything while a functorch interpreter is on the stack, and
// what works on the bare module must not fail in the engine.
class TransformInert final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.event->transforms == 0) return;
    if (fact.kind == FactKind::inside_transform) mark_applicable();
    if (fact.kind == FactKind::manager_call) before_ = *fact.manager;
    if (fact.kind == FactKind::manager_return && fact.method != Method::reset &&
        *fact.manager != before_)
      report(place(*fact.event),
             fmt::format("{} changed the manager of {} under a functorch transform at lc {}",
                         text(fact.event->name), engine_name(fact.engine), fact.event->lc));
    if (fact.kind != FactKind::inside_transform) return;
    const EventKind kind = fact.event->kind;
    if (kind == EventKind::bucket_add || kind == EventKind::bucket_flush)
      report(place(*fact.event),
             fmt::format("a bucket of {} changed under a functorch transform at lc {}",
                         engine_name(fact.engine), fact.event->lc));
    if (kind == EventKind::engine_return && is_engine_error(fact))
      report(place(*fact.event),
             fmt::format("{} left {} of {} under a functorch transform at lc {}",
                         text(fact.event->exception), text(fact.event->name),
                         engine_name(fact.engine), fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override { append_bytes(bytes, before_); }

 private:
  // What PyTorch raises for an unsupported transform; a user's own exception is of other types.
  bool is_engine_error(const Fact& fact) const {
    const std::string_view type = text(fact.event->exception);
    return type == "RuntimeError" || type == "NotImplementedError";
  }

  BackwardState before_;
};

}  // namespace

std::unique_ptr<Monitor> make_released_at_end(const Monitor::Context& context) {
  return std::make_unique<ReleasedAtEnd>(context);
}
std::unique_ptr<Monitor> make_module_stack_balanced(const Monitor::Context& context) {
  return std::make_unique<ModuleStackBalanced>(context);
}
std::unique_ptr<Monitor> make_transform_inert(const Monitor::Context& context) {
  return std::make_unique<TransformInert>(context);
}

}  // namespace zeroproof
