#include "props/train/repeated_calls.h"

#include <algorithm>

#include "props/train/case_memory.h"
#include "props/train/user_gradients.h"
#include "props/train/weight_visit.h"
#include "props/train/window_records.h"

namespace zeroproof::train {
namespace {

bool is_one_of(const auto& calls, const MicroSpec& micro) {
  return std::ranges::find(calls, static_cast<Shortage>(micro.shortage)) != calls.end();
}

}  // namespace

void RepeatedCalls::until_it_fits(const Attempt& attempt, const std::function<void()>& act) {
  const MicroSpec& micro = window_.spec.micros.at(attempt.at);
  if (!is_one_of(attempt.in, micro)) return act();
  Pass& pass = window_.pass;
  record_seen(window_);
  const std::int64_t before = whole_elements(pass);
  std::int64_t left = 0;
  if (!window_.engines) {
    act();
  } else if (!fits(micro, act)) {
    left = std::max<std::int64_t>(whole_elements(pass) - before, 0);
    forget_seen(window_);
    if (clears_behind_shortage(window_.spec, attempt.at)) clear_gradients(window_.spec, pass);
    act();
  }
  if (static_cast<Shortage>(micro.shortage) == Shortage::gathers)
    record_number(pass, "elements that no context holds", static_cast<double>(left));
}

// Of what failed, nothing is known afterwards.
bool RepeatedCalls::fits(const MicroSpec& micro, const std::function<void()>& act) {
  const WindowInputs::Position position = inputs_.position();
  const std::size_t records = window_.engines->records();
  short_of_ = &micro;
  try {
    act();
    short_of_ = nullptr;
    return true;
  } catch (const RuntimeFault&) {
    short_of_ = nullptr;
  }
  inputs_.rewind(position);
  window_.engines->forget_records(records);
  return false;
}

RepeatedCalls::Armed::Armed(const RepeatedCalls& repeated, std::initializer_list<Shortage> calls) {
  const MicroSpec* const micro = repeated.short_of_;
  if (!micro || !is_one_of(calls, *micro)) return;
  runtime_ = repeated.window_.engines->short_runtime();
  const bool is_late = static_cast<Shortage>(micro->shortage) == Shortage::epilogue;
  is_late ? runtime_->arm_behind_task(micro->shortage_at) : runtime_->arm(micro->shortage_at);
}

RepeatedCalls::Armed::~Armed() {
  if (runtime_) runtime_->disarm();
}

}  // namespace zeroproof::train
