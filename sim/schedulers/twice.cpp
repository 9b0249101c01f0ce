#include "sim/schedulers/twice.h"

#include <fmt/format.h>

#include <utility>

#include "sim/fingerprint.h"

namespace zeroproof {
namespace {

Fingerprint question_of(const ChoicePoint& at) {
  StateBytes bytes;
  bytes.add(at.site).add(at.options.size());
  for (const std::string_view option : at.options) bytes.add(option);
  return bytes.fingerprint();
}

}  // namespace

bool TwiceScheduler::new_execution() {
  next_ = 0;
  has_cut_ = false;
  if (divergence_) return false;
  is_second_ = std::exchange(must_repeat_, false);
  if (is_second_) return true;
  points_.clear();
  return inner_.new_execution();
}

std::size_t TwiceScheduler::choose(const ChoicePoint& at) {
  return is_second_ ? compare(at) : record(at);
}

std::size_t TwiceScheduler::record(const ChoicePoint& at) {
  // `taken` stays out of range when the scheduler cuts here.
  points_.push_back({at.state, question_of(at), at.options.size(), at.options.size()});
  has_cut_ = true;
  points_.back().taken = inner_.choose(at);
  has_cut_ = false;
  return points_.back().taken;
}

std::size_t TwiceScheduler::compare(const ChoicePoint& at) {
  if (next_ == points_.size()) {
    diverge(fmt::format("the second run asks '{}' after the {} choices of the first", at.site,
                        points_.size()));
  }
  const Point& point = points_[next_++];
  if (point.question != question_of(at)) {
    diverge(fmt::format("the second run has another site or other options at choice {} ('{}')",
                        next_, at.site));
  }
  if (point.state != Fingerprint(at.state)) {
    diverge(fmt::format("the second run is in another state at choice {} ('{}')", next_, at.site));
  }
  if (point.taken == point.options) {
    has_cut_ = true;
    throw ExecutionCut();
  }
  return point.taken;
}

void TwiceScheduler::diverge(std::string_view text) {
  divergence_ = fmt::format("{}: the world is not deterministic", text);
  throw ExecutionCut();
}

void TwiceScheduler::end_execution(const ExecutionEnd& end) {
  const bool was_stopped_from_outside = end.was_cut && !has_cut_;
  if (is_second_) {
    if (divergence_ || was_stopped_from_outside) return;
    if (next_ != points_.size() || end.was_cut != first_end_.was_cut) {
      divergence_ = fmt::format(
          "the second run ended after {} choices, the first after {}: the world is not "
          "deterministic",
          next_, points_.size());
    } else if (end.final_state != first_end_.final_state) {
      divergence_ = "the second run ended in another state: the world is not deterministic";
    }
    return;
  }
  inner_.end_execution(end);
  first_end_ = end;
  must_repeat_ = !was_stopped_from_outside && !inner_.divergence();
}

std::optional<std::string> TwiceScheduler::divergence() const {
  return divergence_ ? divergence_ : inner_.divergence();
}

}  // namespace zeroproof
