#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "props/boundary_book.h"
#include "props/mark.h"
#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// How the backwards of one optimizer step relate to its forwards.
enum class WindowShape : std::uint8_t {
  retained,     // one forward, several backwards
  outstanding,  // several forwards, then the backwards
  alternating,  // forward, backward, forward, backward
};

// P28, P29, P30. Stage 1/2 rebuild the averaged gradient at every boundary backward
// (docs/spec/zero.md 2.16), and two backwards of one micro-step are both boundary ones
// (docs/spec/zero.md 2.11); stage 3 overwrites unless a forward came between
// (docs/spec/zero.md 2.18). So the first of two such backwards is lost, which is known when the
// optimizer steps. An engine that keeps more says so (window_holds). A backward before which the
// caller has switched the boundary off adds up; BoundaryBook says where that is unknown.
class OverwrittenGradients final : public Monitor {
 public:
  OverwrittenGradients(const Context& context, WindowShape shape)
      : Monitor(context), shape_(shape) {}

  void observe(const Fact& fact) override {
    if (fact.engine.is_none()) return;
    Window& window = windows_[fact.engine];
    switch (fact.kind) {
      case FactKind::forward_begin:
        if (fact.user_task >= 0) return;  // a recompute
        window.forwards += 1;
        if (window.backwards > 0) window.has_later_forward = true;
        window.has_forward_since = true;
        return;
      case FactKind::grad_epilogue_end:
        end_backward(fact, window);
        return;
      case FactKind::model_step:
        judge(fact);
        return;
      case FactKind::step_end:
        end_step(window);
        return;
      case FactKind::zero_grad:
        window = Window{};
        return;
      case FactKind::other:
        if (fact.event->kind == EventKind::bucket_flush)
          for (const NameId param : fact.event->params) window.flushed.insert(param);
        if (fact.method == Method::finalize_window) window.is_unmanaged = true;
        if (fact.event->kind == EventKind::mark) read_mark(fact, window);
        return;
      default:
        return;
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, boundary] : boundaries_) {
      append_bytes(bytes, engine.value);
      boundary.append_state(bytes);
    }
    for (const auto& [engine, window] : windows_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, (std::int64_t{window.forwards} << 32) | window.backwards);
      append_bytes(bytes, window.micro_step);
      append_bytes(bytes, window.is_at_boundary);
      append_bytes(bytes, window.has_later_forward);
      append_bytes(bytes, window.has_forward_since);
      append_bytes(bytes, window.has_later_step);
      append_bytes(bytes, window.is_unmanaged);
      append_bytes(bytes, window.holds);
      for (const auto* params : {&window.flushed, &window.kept, &window.lost}) {
        append_bytes(bytes, static_cast<std::int64_t>(params->size()));
        for (const NameId param : *params) append_bytes(bytes, param.value);
      }
    }
  }

 private:
  struct Window {
    std::int32_t forwards = 0;
    std::int32_t backwards = 0;
    std::int64_t micro_step = -1;    // of the last completed backward
    bool is_at_boundary = true;      // that one, as far as the caller did not say otherwise
    bool has_later_forward = false;  // a forward after the first backward
    bool has_forward_since = false;  // after the last one
    bool has_later_step = false;     // a step between them that was no boundary
    bool is_unmanaged = false;
    std::int32_t holds = -1;  // backwards, as the engine says; -1: it does not
    std::uint64_t last_lc = 0;
    Place place;                // where the loss happened
    std::set<NameId> flushed;   // by the backward that runs
    std::set<NameId> kept;      // by the last one
    std::set<NameId> lost;      // by earlier ones, overwritten
    std::uint64_t lost_lc = 0;  // end of the backward that was overwritten
  };

  void read_mark(const Fact& fact, Window& window) {
    const std::string_view label = text(fact.event->name);
    boundaries_[fact.engine].read_mark(label);
    if (const auto holds = mark_number(label, "window_holds"))
      window.holds = static_cast<std::int32_t>(*holds);
  }

  void end_backward(const Fact& fact, Window& window) {
    const bool is_stage_3 = fact.method == Method::grad_epilogue_3;
    const bool is_both_boundary = window.micro_step == fact.micro_step && window.is_at_boundary;
    const bool overwrites = is_stage_3 ? !window.has_forward_since : is_both_boundary;
    const bool is_same = window.holds >= 0 ? window.holds <= window.backwards : overwrites;
    if (fact.has_raised) {
      window.flushed.clear();
      return;
    }
    if (window.backwards > 0 && is_same) {
      for (const NameId param : window.kept)
        if (!is_stage_3 || window.flushed.contains(param)) window.lost.insert(param);
      window.lost_lc = window.last_lc;
      window.place = place(*fact.event);
    }
    window.backwards += 1;
    window.micro_step = fact.micro_step;
    window.is_at_boundary = boundaries_[fact.engine].forced().value_or(true);
    window.has_forward_since = false;
    window.last_lc = fact.event->lc;
    window.kept = std::move(window.flushed);
    window.flushed.clear();
  }

  WindowShape shape_of(const Window& window) const {
    if (window.forwards <= 1) return WindowShape::retained;
    return window.has_later_forward ? WindowShape::alternating : WindowShape::outstanding;
  }

  void judge(const Fact& fact) {
    const Window window = std::exchange(windows_[fact.engine], {});
    if (window.backwards < 2 || window.is_unmanaged || window.has_later_step ||
        shape_of(window) != shape_ ||
        boundaries_[fact.engine].is_set_out_of_sight(window.backwards))
      return;
    mark_applicable();
    if (window.lost.empty()) return;
    const std::string params = names_of(window.lost);
    report(window.place,
           fmt::format("the backward that ended at lc {} overwrote the gradient that the one ended "
                       "at lc {} had left for {}; the step of {} at lc {} uses only the later one",
                       window.place.lc, window.lost_lc, params, engine_name(fact.engine),
                       fact.event->lc));
  }

  // Without a model step the micro-step advances and the window goes on.
  void end_step(Window& window) {
    if (window.micro_step < 0) return;
    window.has_later_step = true;
    window.lost.clear();
    window.micro_step = -1;
  }

  WindowShape shape_;
  std::map<EngineId, Window> windows_;
  std::map<EngineId, BoundaryBook> boundaries_;
};

// P42.
class OneFlushPerBackward final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.event->kind == EventKind::bucket_flush && fact.kind == FactKind::other &&
        fact.user_task >= 0) {
      mark_applicable();
      Flushes& flushes = flushes_[{fact.engine, fact.user_task}];
      for (const NameId param : fact.event->params) {
        if (flushes.seen.insert(param).second || !flushes.repeated.is_none()) continue;
        flushes.repeated = param;
        flushes.place = place(*fact.event);
      }
    }
    if (fact.kind != FactKind::backward_done) return;
    const auto flushes = flushes_.find({fact.engine, fact.tally->task});
    if (flushes == flushes_.end()) return;
    if (!fact.has_raised && !flushes->second.repeated.is_none())
      report(flushes->second.place,
             fmt::format("{} was flushed a second time in {} of {} at lc {}",
                         text(flushes->second.repeated), task_name(*fact.tally),
                         engine_name(fact.engine), flushes->second.place.lc));
    flushes_.erase(flushes);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [key, flushes] : flushes_) {
      append_bytes(bytes, key.first.value);
      append_bytes(bytes, key.second);
      append_bytes(bytes, flushes.repeated.value);
      append_bytes(bytes, static_cast<std::int64_t>(flushes.seen.size()));
      for (const NameId param : flushes.seen) append_bytes(bytes, param.value);
    }
  }

 private:
  struct Flushes {
    std::set<NameId> seen;
    NameId repeated;
    Place place;
  };
  std::map<std::pair<EngineId, std::int64_t>, Flushes> flushes_;  // by engine and task
};

}  // namespace

std::unique_ptr<Monitor> make_retained_backwards_sum(const Monitor::Context& context) {
  return std::make_unique<OverwrittenGradients>(context, WindowShape::retained);
}
std::unique_ptr<Monitor> make_outstanding_forwards_sum(const Monitor::Context& context) {
  return std::make_unique<OverwrittenGradients>(context, WindowShape::outstanding);
}
std::unique_ptr<Monitor> make_backwards_before_step_sum(const Monitor::Context& context) {
  return std::make_unique<OverwrittenGradients>(context, WindowShape::alternating);
}
std::unique_ptr<Monitor> make_one_flush_per_backward(const Monitor::Context& context) {
  return std::make_unique<OneFlushPerBackward>(context);
}

}  // namespace zeroproof
