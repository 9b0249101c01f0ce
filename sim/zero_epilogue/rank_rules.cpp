#include "sim/zero_epilogue/rank_rules.h"

#include <algorithm>
#include <bit>

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::uint64_t low_bits(std::uint32_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

constexpr std::uint16_t bit(EventKind kind) {
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(kind));
}

}  // namespace

RankRules::RankRules(const Settings& settings)
    : settings_(settings),
      buckets_(settings.buckets()),
      collectives_(settings.collectives()),
      all_(low_bits(settings.hooks)),
      first_phase_(low_bits(settings.phase_hooks())) {}

std::uint64_t RankRules::open_hooks(const RankState& state) const {
  const std::uint64_t left = all_ & ~state.fired;
  switch (settings_.order) {
    case HookOrder::any:
      return left;
    case HookOrder::chain:
      return left & -left;
    case HookOrder::spine:
      return left & low_bits(std::min(settings_.hooks, state.spine * settings_.leaves));
    case HookOrder::two_phase:
      break;
  }
  return (state.fired & first_phase_) == first_phase_ ? left : left & first_phase_;
}

// The counter starts a pass at the number of hooks and loses one with each.
bool RankRules::is_counter_zero(const RankState& state) const {
  if (is(Defect::counter_of_first_phase)) {
    return static_cast<std::uint32_t>(std::popcount(state.fired)) == settings_.phase_hooks();
  }
  if (is(Defect::counter_not_reset) && state.pass > 0) return state.fired == 0;
  return state.fired == all_;
}

bool RankRules::may_run_counter(const RankState& state) const {
  if (!is_counter_zero(state) || state.fired == 0) return false;
  if (is(Defect::counter_ignores_queued)) return state.epilogues < 2;
  if (is(Defect::ignores_already_ran)) return !state.is_queued && state.epilogues < 2;
  return !state.is_queued && state.epilogues == 0;
}

bool RankRules::may_run_callback(const RankState& state) const {
  if (!state.is_queued) return false;
  if (is(Defect::callback_on_inner_task)) {
    return state.epilogues == 0 && (state.fired & first_phase_) == first_phase_;
  }
  const int most = is(Defect::counter_ignores_queued) ? 2 : 1;
  return state.fired == all_ && state.epilogues < most;
}

Enabled RankRules::enabled(const RankState& state) const {
  Enabled result;
  if (has_ended(state)) return result;
  if (state.interface == Interface::unset) {
    result.kinds = bit(EventKind::choose_counter) | bit(EventKind::choose_callback);
    return result;
  }
  if (settings_.is_late || state.ready == 0) {
    result.hooks = open_hooks(state);
    if (settings_.order == HookOrder::spine && state.spine * settings_.leaves < settings_.hooks) {
      result.kinds |= bit(EventKind::spine);
    }
    if (may_run_counter(state)) result.kinds |= bit(EventKind::counter);
    if (may_run_callback(state)) result.kinds |= bit(EventKind::callback);
  }
  if (state.ready != 0) result.kinds |= bit(EventKind::launch);
  const bool may_finish = state.ready == 0 && state.epilogues != 0;
  if (may_finish && (returns_unwaited() || state.completed == state.launched)) {
    result.kinds |= bit(EventKind::finish);
  }
  return result;
}

bool RankRules::waits_for_stream(const RankState& state) const {
  return !returns_unwaited() && !has_ended(state) && state.ready == 0 && state.epilogues != 0 &&
         state.completed != state.launched;
}

Property RankRules::step(RankState& state, RankEvent event) const {
  switch (event.kind) {
    case EventKind::choose_counter:
      state.interface = Interface::counter;
      return Property::none;
    case EventKind::choose_callback:
      state.interface = Interface::callback;
      return Property::none;
    case EventKind::hook:
      return fire(state, event.hook);
    case EventKind::spine:
      ++state.spine;
      return Property::none;
    case EventKind::callback:
      state.is_queued = false;
      return run_epilogue(state);
    case EventKind::counter:
      return run_epilogue(state);
    case EventKind::launch:
      launch(state);
      return Property::none;
    case EventKind::finish:
      return finish(state);
    case EventKind::complete:
      ++state.completed;
      return Property::none;
  }
  return Property::none;
}

bool RankRules::is_bucket_full(std::uint64_t fired, std::uint32_t bucket) const {
  const std::uint32_t first = bucket * settings_.bucket;
  if (first + settings_.bucket > settings_.hooks) return false;  // the last one, partly filled
  const std::uint64_t members = low_bits(settings_.bucket) << first;
  return (fired & members) == members;
}

bool RankRules::is_next_full(const RankState& state) const {
  return state.launched < due(state) && is_bucket_full(state.fired, state.launched % buckets_);
}

void RankRules::update(RankState& state) const {
  if (has_tags()) {
    pick_filled(state);
  } else {
    state.ready = is_next_full(state) ? 1 : 0;
  }
}

// M5: the filled bucket of the lowest number that this pass has not launched.
void RankRules::pick_filled(RankState& state) const {
  if (state.ready != 0) return;
  std::uint32_t launched = 0;
  for (std::uint32_t slot = buckets_ * state.pass; slot < state.launched; ++slot) {
    launched |= 1U << (state.tags >> 4 * slot & 15U);
  }
  for (std::uint32_t bucket = 0; bucket < buckets_; ++bucket) {
    if ((launched >> bucket & 1U) == 0 && is_bucket_full(state.fired, bucket)) {
      state.ready = static_cast<std::uint8_t>(bucket + 1);
      return;
    }
  }
}

void RankRules::flush(RankState& state) const {
  const bool is_due = state.launched < due(state);
  if (has_tags()) {
    if (is_due && state.ready == 0) state.ready = static_cast<std::uint8_t>(buckets_);
  } else if (is(Defect::no_flush)) {
    update(state);
  } else {
    const bool is_lost = is(Defect::no_flush_when_reversed) && state.is_descending;
    state.ready = is_due && !is_lost ? 1 : 0;
  }
}

Property RankRules::fire(RankState& state, unsigned hook) const {
  if (state.epilogues != 0) return Property::a2;
  if (is(Defect::no_flush_when_reversed)) {
    state.is_descending = state.is_descending && state.fired == (all_ & ~low_bits(hook + 1));
  }
  state.fired |= std::uint64_t{1} << hook;
  state.is_queued = state.interface == Interface::callback;
  update(state);
  return Property::none;
}

Property RankRules::run_epilogue(RankState& state) const {
  if (++state.epilogues != 1) return Property::a1;
  flush(state);
  return Property::none;
}

void RankRules::launch(RankState& state) const {
  if (has_tags()) {
    state.tags |= static_cast<std::uint64_t>(state.ready - 1) << 4 * state.launched;
    state.ready = 0;
    ++state.launched;
    update(state);
    if (state.epilogues != 0) flush(state);
    return;
  }
  ++state.launched;
  if (state.epilogues != 0) {
    flush(state);
  } else {
    update(state);
  }
}

Property RankRules::finish(RankState& state) const {
  if (state.completed != state.launched) return Property::a3;
  if (state.fired != all_) return Property::a2;
  if (state.launched != due(state)) return Property::a3;
  ++state.pass;
  state.fired = 0;
  state.epilogues = 0;
  state.is_queued = false;
  state.spine = 1;
  state.is_descending = true;
  return Property::none;
}

}  // namespace zeroproof::zero_epilogue
