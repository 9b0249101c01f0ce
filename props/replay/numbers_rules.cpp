#include "props/replay/numbers_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kStepsMin = 2;

template <class T>
const T* entry(const std::vector<std::optional<T>>& values, std::size_t at) {
  return at < values.size() && values[at] ? &*values[at] : nullptr;
}

}  // namespace

void NumbersRules::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::gt_begin:
      if (!backward_.begins()) break;
      formed_.clear();
      findings_.begin_story(event);
      break;
    case EventKind::gt_end:
      last_ = event;
      break;
    case EventKind::param_post_acc:
      formed_.push_back(event.param);
      break;
    case EventKind::opt_step:
      last_ = event;
      break;
    default:
      break;
  }
}

void NumbersRules::on_numbers(const NumbersRecord& record) {
  if (record.is_after_step)
    after_step(record);
  else
    before_step(record);
}

void NumbersRules::before_step(const NumbersRecord& record) {
  for (std::size_t at = 0; at < record.params.size(); ++at) {
    const std::string* hash = entry(record.param_hashes, at);
    const double* norm = entry(record.grad_norms, at);
    Motion& motion = motions_[record.params[at]];
    motion.has_moved =
        motion.has_moved || (hash != nullptr && motion.before && *motion.before != *hash);
    if (hash != nullptr) motion.before = *hash;
    if (norm != nullptr && *norm != 0) ++motion.steps;
  }
  if (!record.bad.empty()) find_bad_gradient(record);
}

void NumbersRules::after_step(const NumbersRecord& record) {
  for (std::size_t at = 0; at < record.params.size(); ++at) {
    const std::string* hash = entry(record.param_hashes, at);
    Motion& motion = motions_[record.params[at]];
    if (hash == nullptr) motion.has_moved = true;  // not known
    if (hash != nullptr && motion.before && *motion.before != *hash) motion.has_moved = true;
  }
  if (!record.bad.empty()) find_bad_parameter(record);
}

// The first of them whose gradient formed: what the backward passed on went bad there or before.
std::string NumbersRules::first_formed(const std::vector<std::string>& params) const {
  for (const NameId param : formed_) {
    const std::string_view name = names_.text(param);
    if (std::find(params.begin(), params.end(), name) != params.end()) return std::string(name);
  }
  return params.front();
}

void NumbersRules::find_bad_gradient(const NumbersRecord& record) {
  if (overflows_++ > 0) return;
  overflow_at_ = last_;
  overflow_text_ = fmt::format(
      "at step {} the gradients or values of {} of {} parameters are not finite; in "
      "the order of the backward {} is the first",
      record.step, record.bad.size(), record.params.size(), first_formed(record.bad));
}

void NumbersRules::find_bad_parameter(const NumbersRecord& record) {
  const std::string began = overflow_text_.empty() ? std::string() : "; " + overflow_text_;
  findings_.find(
      {.kind = "numbers.parameter_not_finite",
       .what = fmt::format("after step {} {} parameters are not finite, {} among "
                           "them{}",
                           record.step, record.bad.size(), listed(record.bad), began),
       .rule = "a step with a gradient that is not finite is skipped, so that parameters "
               "stay finite",
       .look_at = "the loss and the inputs of that step, and the layer that is named: "
                  "log of zero, division, fp16 without a loss scale; "
                  "clip_grad_norm_(error_if_nonfinite=True) stops earlier",
       .parameter = first_formed(record.bad)},
      last_);
}

void NumbersRules::find_still() {
  std::vector<std::string> still;
  std::size_t judged = 0;
  for (const auto& [param, motion] : motions_) {
    if (motion.steps < kStepsMin || !motion.before) continue;
    ++judged;
    if (!motion.has_moved) still.push_back(param);
  }
  if (still.empty()) return;
  const bool is_all = still.size() == judged;
  findings_.find(
      {.kind = "numbers.parameter_still",
       .gravity = Gravity::hazard,
       .what = fmt::format("{} of {} parameters did not move in any recorded step, although their "
                           "gradients are not zero: {}",
                           still.size(), judged, listed(still)),
       .rule = "a step with a gradient changes the parameter, unless the learning rate is zero",
       .look_at = is_all ? "the learning rate and its schedule; whether the optimizer holds copies "
                           "that are never written back"
                         : "updates that are smaller than the spacing of the parameter's dtype "
                           "(bf16 without float32 copies), or a learning rate of zero in one group",
       .parameter = still.size() == 1 ? still.front() : std::string()},
      last_);
}

void NumbersRules::finish(std::vector<Diagnosis>& out) {
  find_still();
  if (overflows_ > 0) {
    const std::string times =
        overflows_ > 1 ? fmt::format(" ({} steps, this is the first)", overflows_) : "";
    findings_.find({.kind = "numbers.gradient_not_finite",
                    .gravity = Gravity::hazard,
                    .what = overflow_text_ + times,
                    .rule = "gradients are finite; with a loss scale, an overflow is skipped and "
                            "the scale shrinks",
                    .look_at = "the layer that is named and what feeds it; whether the scale "
                               "shrinks and the following steps are finite"},
                   overflow_at_);
  }
  findings_.take(out);
}

}  // namespace zeroproof
