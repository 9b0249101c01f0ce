#include "props/train/case_memory.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/case_turns.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kShortageStream = 0x6d656d6f7279ULL;
constexpr int kAllocationsMost = 16;

Shortage shortage_of(const MicroSpec& micro) {
  return static_cast<Shortage>(micro.shortage);
}

// Of stages 0 and 1, at the end of a window: sums of earlier micro-batches have the failed one's
// gradients in them by then.
bool may_reduce_sums(const CaseSpec& spec, std::size_t i) {
  return spec.stage <= 1 && spec.is_unmanaged == 0 &&
         (spec.sets_boundary != 0 || is_first(spec, i + 1));
}

bool is_of_backward(const MicroSpec& micro) {
  return shortage_of(micro) == Shortage::backward || shortage_of(micro) == Shortage::epilogue;
}

// The first ones more often: every call has them.
int some_allocation(Draws& draws) {
  int k = 1;
  while (k < kAllocationsMost && !draws.one_in(3)) ++k;
  return k;
}

void set(MicroSpec& micro, Shortage shortage, Draws& draws) {
  micro.shortage = static_cast<int>(shortage);
  micro.shortage_at = some_allocation(draws);
}

void make_simple(CaseSpec& spec) {
  spec.engines = 1;
  spec.takes_turns = spec.is_tiled = spec.tile_wrap = spec.skips_frames = 0;
  for (MicroSpec& micro : spec.micros) micro.skips_on = micro.unread_on = 0;
  if (spec.ranks > 1) spec.experts = spec.leaf_by = 0;
}

// Everything else of the micro-batch stays in front of its training.
void simplify(const CaseSpec& spec, MicroSpec& micro) {
  micro.outstanding = micro.repeats = micro.block = micro.is_broken = micro.wrapped = 0;
  micro.interrupt = micro.interrupt_at = micro.aborts_inside = micro.keeps = micro.creates = 0;
  micro.clears = std::min(micro.clears, 1);
  if (micro.asks == 2) micro.asks = 0;
  if (spec.heads == 2 && micro.losses == static_cast<int>(Losses::both))
    micro.losses = static_cast<int>(Losses::sum);
}

void fail_training(CaseSpec& spec, Draws& draws) {
  make_simple(spec);
  const bool is_of_backward = !draws.one_in(4);
  if (is_of_backward && (spec.stage == 1 || spec.stage == 2)) spec.ranks = 1;
  if (spec.ranks == 1)
    for (MicroSpec& micro : spec.micros) micro.overflow_rank = 0;
  const bool is_managed = spec.is_manual == 0;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (micro.past_engine == 3 || draws.one_in(3)) continue;
    if (is_of_backward && may_reduce_sums(spec, i) && !is_first(spec, i)) continue;
    simplify(spec, micro);
    if (spec.stage <= 1) micro.is_uncleared = 0;
    if (i > 0) simplify(spec, spec.micros[i - 1]);
    const bool is_late = is_managed && micro.by_hand == 0 && draws.one_in(2);
    const Shortage late = is_late ? Shortage::epilogue : Shortage::backward;
    set(micro, is_of_backward ? late : Shortage::forward, draws);
  }
}

void fail_evaluation(CaseSpec& spec, Draws& draws) {
  make_simple(spec);
  spec.stage = 3;
  spec.is_scattered = 0;
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.idle_forward = 1;
    set(micro, Shortage::evaluation, draws);
  }
}

void fail_gathers(CaseSpec& spec, Draws& draws) {
  make_simple(spec);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    if (micro.gathers == 0) micro.gathers = 1;
    set(micro, Shortage::gathers, draws);
  }
}

void fail_getters(CaseSpec& spec, Draws& draws) {
  make_simple(spec);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    if (micro.asks != 1) micro.peeks = 1;
    set(micro, Shortage::getters, draws);
  }
}

// --- what can be ------------------------------------------------------------------------------

// One forward and one backward, so that either all of it is done again or nothing.
bool trains_once(const CaseSpec& spec, const MicroSpec& micro) {
  const bool has_one_loss = spec.heads == 1 || micro.losses != static_cast<int>(Losses::both);
  return has_one_loss && micro.past_engine != 3 && micro.clears <= 1 && micro.asks != 2 &&
         micro.outstanding + micro.repeats + micro.block + micro.wrapped + micro.interrupt +
                 micro.aborts_inside + micro.keeps + micro.creates ==
             0;
}

std::string backward_problem(const CaseSpec& spec, std::size_t i) {
  const MicroSpec& micro = spec.micros[i];
  // Stages 1 and 2: a rank allocates for what it owns, so ranks would fail at different places.
  if (spec.ranks > 1 && (spec.stage == 1 || spec.stage == 2))
    return "a backward that fails on some ranks alone";
  const bool has_earlier = !is_first(spec, i) || micro.is_uncleared != 0;
  if (may_reduce_sums(spec, i) && has_earlier) return "a window that cannot be taken back";
  const bool is_managed = spec.is_manual + micro.by_hand == 0;
  return shortage_of(micro) != Shortage::epilogue || is_managed ? "" : "an epilogue of nobody";
}

std::string training_problem(const CaseSpec& spec, std::size_t i) {
  const MicroSpec& micro = spec.micros[i];
  const bool is_ahead_of_it = i > 0 && is_ahead(spec.micros[i - 1]);
  if (!trains_once(spec, micro) || is_ahead_of_it) return "more than can be done again";
  return is_of_backward(micro) ? backward_problem(spec, i) : "";
}

std::string micro_shortage_problem(const CaseSpec& spec, std::size_t i) {
  const MicroSpec& micro = spec.micros[i];
  const bool is_none = micro.shortage == 0;
  if (micro.shortage < 0 || micro.shortage > static_cast<int>(Shortage::getters) ||
      micro.shortage_at < (is_none ? 0 : 1) || micro.shortage_at > (is_none ? 0 : kAllocationsMost))
    return "a number out of range";
  if (is_none) return {};
  const bool has_ranks_alike = spec.experts + micro.skips_on + micro.unread_on == 0;
  if (spec.engines > 1 || spec.is_tiled + spec.skips_frames != 0 ||
      (spec.ranks > 1 && !has_ranks_alike))
    return "a shortage that ranks do not share";
  switch (shortage_of(micro)) {
    case Shortage::evaluation:
      return micro.idle_forward == 1 ? "" : "no evaluation that could fail";
    case Shortage::gathers:
      return spec.stage == 3 && micro.gathers != 0 &&
                     static_cast<Gathers>(micro.gathers) != Gathers::holds_none
                 ? ""
                 : "no gather that could fail";
    case Shortage::getters:
      return micro.peeks != 0 || micro.asks == 1 ? "" : "no getter that could fail";
    default:
      return training_problem(spec, i);
  }
}

}  // namespace

Additions shortage_additions() {
  static constexpr Addition kShortages[] = {
      {1, fail_training}, {4, fail_evaluation}, {4, fail_gathers}, {4, fail_getters}};
  return {kShortageStream, 15, kShortages};
}

std::string shortage_problem(const CaseSpec& spec) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (std::string problem = micro_shortage_problem(spec, i); !problem.empty()) return problem;
  return {};
}

bool clears_behind_shortage(const CaseSpec& spec, std::size_t i) {
  return is_of_backward(spec.micros[i]) && may_reduce_sums(spec, i);
}

}  // namespace zeroproof::train
