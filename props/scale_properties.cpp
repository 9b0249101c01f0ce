// Loss scale, overflow and clipping, by the marks of an engine: P57, P58, P59
// (docs/spec/zero.md 2.19).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "props/mark.h"
#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P57, one rank of it: `mark overflow:1` is what all ranks agreed on, `mark step_applied` says
// that parameters changed. That the ranks agree is judged by RunGroup.
class OverflowUpdatesNothing final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::step_begin || fact.kind == FactKind::step_end)
      overflow_lc_.erase(fact.engine);
    if (fact.event->kind != EventKind::mark) return;
    if (const auto overflow = mark_number(text(fact.event->name), "overflow")) {
      mark_applicable();
      if (*overflow != 0) overflow_lc_[fact.engine] = fact.event->lc;
    }
    const auto known = overflow_lc_.find(fact.engine);
    if (known == overflow_lc_.end() || text(fact.event->name) != "step_applied") return;
    report(place(*fact.event),
           fmt::format("{} updated its parameters at lc {} after the overflow at lc {}",
                       engine_name(fact.engine), fact.event->lc, known->second));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& entry : overflow_lc_) append_bytes(bytes, entry.first.value);
  }

 private:
  std::map<EngineId, std::uint64_t> overflow_lc_;
};

// P58. `mark loss_scale_window:N` says that the scale is dynamic; `loss_scale:X` follows it. Steps
// count that come before both, of windows without a forward. Not judged after a load: it brings a
// count of steps along that has no event.
class DynamicScaleFollowsRule final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::step_end) end_step(fact);
    const std::string_view label = text(fact.event->name);
    if (fact.event->kind == EventKind::engine_call && label == "engine.load_checkpoint")
      scales_[fact.engine] = {.is_loaded = true};
    if (fact.event->kind != EventKind::mark) return;
    Scale& scale = scales_[fact.engine];
    if (!scale.is_loaded) read_configuration(label, scale);  // an engine may write it late
    if (const auto overflow = mark_number(label, "overflow")) update(*overflow != 0, scale);
    if (const auto value = mark_number(label, "loss_scale")) see_scale(fact, *value, scale);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, scale] : scales_) {
      append_bytes(bytes, id.value);
      append_bytes(bytes, scale.current);
      append_bytes(bytes, scale.hysteresis_left);
      append_bytes(bytes, scale.iteration - scale.last_overflow);
      append_bytes(bytes, scale.is_loaded);
    }
  }

 private:
  struct Scale {
    std::int64_t window = 0;  // 0: not dynamic
    double hysteresis = 2;
    double minimum = 1;
    bool is_consecutive = false;
    double current = 0;  // 0: not recorded yet
    double hysteresis_left = 2;
    std::int64_t iteration = 0;
    std::int64_t last_overflow = -1;
    bool is_expected = false;  // the next loss_scale mark has to be `current`
    bool has_to_raise = false;
    bool is_loaded = false;  // the count before is unknown
  };

  static void read_configuration(std::string_view label, Scale& scale) {
    if (const auto window = mark_number(label, "loss_scale_window"))
      scale.window = static_cast<std::int64_t>(*window);
    if (const auto hysteresis = mark_number(label, "hysteresis"))
      scale.hysteresis = scale.hysteresis_left = *hysteresis;
    if (const auto minimum = mark_number(label, "min_loss_scale")) scale.minimum = *minimum;
    if (const auto consecutive = mark_number(label, "consecutive_hysteresis"))
      scale.is_consecutive = *consecutive != 0;
  }

  // Before it says so, it is unknown whether the scale is dynamic.
  static void update(bool has_overflow, Scale& scale) {
    scale.is_expected = scale.window > 0 && scale.current != 0;
    if (has_overflow) {
      if (scale.is_expected) shrink(scale);
      scale.last_overflow = scale.iteration;
    } else {
      if (scale.is_consecutive) scale.hysteresis_left = scale.hysteresis;
      const std::int64_t stable = scale.iteration - scale.last_overflow - 1;
      if (scale.is_expected && stable > 0 && stable % scale.window == 0) {
        scale.hysteresis_left = scale.hysteresis;
        scale.current *= 2;
      }
    }
    scale.iteration += 1;
  }

  static void shrink(Scale& scale) {
    if (scale.hysteresis == 1 || scale.hysteresis_left == 1) {
      scale.has_to_raise = scale.current == scale.minimum;
      scale.current = std::max(scale.current / 2, scale.minimum);
    } else {
      scale.hysteresis_left -= 1;
    }
  }

  void see_scale(const Fact& fact, double value, Scale& scale) {
    if (scale.is_expected) {
      mark_applicable();
      if (value != scale.current)
        report(place(*fact.event),
               fmt::format("the loss scale of {} is {} at lc {}, by the rule it is {}",
                           engine_name(fact.engine), value, fact.event->lc, scale.current));
    }
    scale.is_expected = false;
    scale.current = value;
  }

  void end_step(const Fact& fact) {
    const auto known = scales_.find(fact.engine);
    if (known == scales_.end()) return;
    const bool has_to_raise = std::exchange(known->second.has_to_raise, false);
    if (!has_to_raise) return;
    mark_applicable();
    if (fact.has_raised) return;
    report(place(*fact.event),
           fmt::format("the step of {} that ended at lc {} overflowed at the minimum loss scale "
                       "without an exception",
                       engine_name(fact.engine), fact.event->lc));
  }

  std::map<EngineId, Scale> scales_;
};

// P59. `mark gradient_clipping:C`, `grad_norm:N` (as reported) and `clipped_grad_norm:M`.
class ClippedNormBounded final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.event->kind != EventKind::mark) return;
    const std::string_view label = text(fact.event->name);
    Clipping& clipping = clippings_[fact.engine];
    if (const auto limit = mark_number(label, "gradient_clipping")) clipping.limit = *limit;
    if (const auto norm = mark_number(label, "grad_norm")) clipping.norm = *norm;
    if (const auto clipped = mark_number(label, "clipped_grad_norm")) judge(fact, *clipped);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, clipping] : clippings_) {
      append_bytes(bytes, id.value);
      append_bytes(bytes, clipping.limit);
      append_bytes(bytes, clipping.norm.value_or(-1));
    }
  }

 private:
  struct Clipping {
    double limit = 0;  // 0: off
    std::optional<double> norm;
  };

  void judge(const Fact& fact, double clipped) {
    constexpr double kSlack = 1e-5;
    Clipping& clipping = clippings_[fact.engine];
    const auto norm = std::exchange(clipping.norm, std::nullopt);
    if (clipping.limit <= 0) return;
    mark_applicable();
    if (!(clipped <= clipping.limit * (1 + kSlack)))
      report(place(*fact.event),
             fmt::format("the gradient of {} has norm {} at lc {}, clipped to {}",
                         engine_name(fact.engine), clipped, fact.event->lc, clipping.limit));
    if (!norm) return;
    const double expected = std::min(*norm, clipping.limit);
    constexpr double kClose = 1e-3;  // the norm is formed in the dtype of the gradient
    if (std::abs(clipped - expected) <= kClose * expected + kSlack) return;
    report(place(*fact.event),
           fmt::format("{} reported the norm {} at lc {}, but after clipping to {} it is {}",
                       engine_name(fact.engine), *norm, fact.event->lc, clipping.limit, clipped));
  }

  std::map<EngineId, Clipping> clippings_;
};

}  // namespace

std::unique_ptr<Monitor> make_overflow_updates_nothing(const Monitor::Context& context) {
  return std::make_unique<OverflowUpdatesNothing>(context);
}
std::unique_ptr<Monitor> make_dynamic_scale_follows_rule(const Monitor::Context& context) {
  return std::make_unique<DynamicScaleFollowsRule>(context);
}
std::unique_ptr<Monitor> make_clipped_norm_bounded(const Monitor::Context& context) {
  return std::make_unique<ClippedNormBounded>(context);
}

}  // namespace zeroproof
