#include "props/mutation/excuses.h"

#include <algorithm>

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;

// P42 is about gradients that complete once in a backward: not about a layer that several nested
// backwards add to, which our engine reduces as often as it comes.
bool completes_often(const CaseSpec& spec) {
  const auto is_nested = [](const train::CallSpec& call) {
    return call.wrap == static_cast<int>(train::Wrap::reentrant);
  };
  const auto sums = [](const train::MicroSpec& micro) {
    return static_cast<train::Outstanding>(micro.outstanding) == train::Outstanding::summed;
  };
  const auto wraps = [](const train::MicroSpec& micro) { return micro.wrapped != 0; };
  if (std::ranges::any_of(spec.micros, wraps)) return true;
  const bool has_leaves = spec.granularity != 0 || spec.experts != 0;
  if (std::ranges::any_of(spec.micros, sums) &&
      (has_leaves || std::ranges::any_of(spec.calls, is_nested)))
    return true;
  const auto is_used_again = [&](const train::CallSpec& call) { return is_shared(spec, call); };
  const auto is_nested_again = [&](const train::CallSpec& call) {
    return is_nested(call) && (is_used_again(call) || spec.reads == call.layer + 1);
  };
  const auto is_first = [&](const train::CallSpec& call) {
    return call.layer == 0 && is_nested(call);
  };
  const bool bypasses = std::ranges::any_of(
      spec.micros, [](const train::MicroSpec& micro) { return micro.has_bypass != 0; });
  // A leaf module adds its gradients whenever its backward ends.
  if (spec.granularity != 0 && (bypasses || std::ranges::any_of(spec.calls, is_used_again)))
    return true;
  return spec.is_tiled != 0 || std::ranges::any_of(spec.calls, is_nested_again) ||
         (bypasses && std::ranges::any_of(spec.calls, is_first));
}

bool trains_inside(const CaseSpec& spec) {
  return std::ranges::any_of(spec.micros, [](const train::MicroSpec& micro) {
    return static_cast<train::Interrupt>(micro.interrupt) == train::Interrupt::own;
  });
}

// Where no recorded fetch, or none any more, tells what is gathered ahead for which use.
bool is_order_unknown(const CaseSpec& spec) {
  // Of a weight that a module of its own reads late; of what a context in the middle of a backward
  // has given up; behind a transform, which has a backward of its own. Open, both rare: behind a
  // forward that had no room, and for a module that runs once more past the engine's forward where
  // what was recorded before is an evaluation.
  return spec.reads_late != 0 || std::ranges::any_of(spec.micros, [](const auto& micro) {
           return micro.shortage != 0 || micro.idle_forward >= 3 ||
                  (micro.idle_forward != 0 && micro.has_bypass != 0) ||
                  static_cast<train::Interrupt>(micro.interrupt) == train::Interrupt::changes;
         });
}

}  // namespace

bool is_excused(const CaseSpec& spec, std::string_view number) {
  const auto any = [&](auto is_so) { return std::ranges::any_of(spec.micros, is_so); };
  // A backward inside another of the same engine has an epilogue of its own.
  if (number == "P1" || number == "P2") return trains_inside(spec);
  // An abort takes the callback of every engine in the backward along, without a call of its own.
  if (number == "P14")
    return any([](auto& it) {
      const auto misuse = static_cast<train::Misuse>(it.misuse);
      return train::has_abort(it) || misuse == train::Misuse::unscaled_second ||
             misuse == train::Misuse::others_loss ||
             static_cast<train::Interrupt>(it.interrupt) == train::Interrupt::breaks;
    });
  // An engine's forward in a checkpoint is part of a backward that began without it.
  if (number == "P17") return spec.is_manual != 0 && any([](auto& it) { return it.wrapped != 0; });
  if (number == "P42") return trains_inside(spec) || completes_often(spec);
  // It counts from the first step on, and others took that.
  if (number == "P58") return spec.first_ranks != 0;
  // Autocast's cast of a weight is differentiated behind the module whose input has come.
  if (number == "P62")
    return static_cast<train::Precision>(spec.precision) == train::Precision::autocast;
  // What the user has gathered around a backward stays until his context ends.
  if (number == "P63") return any([](auto& it) { return it.spans != 0; });
  // A loss that nobody scaled is refused before its backward does anything.
  // And it waits for what is on the way, whoever comes next.
  if (number == "P56" || number == "R20") return any(train::is_refused_late);
  // What persists, or is returned, an engine tells behind its first step. A recompute that has no
  // room tells no end of its modules, as one that stops early.
  if ((number == "P78" && spec.persistence + spec.returns != 0) ||
      (number == "P65" && has_checkpoints(spec)))
    return any([](auto& it) { return it.shortage != 0; });
  // A weight that a layer returns is a new use of it, which no recorded order knows. So is one that
  // is read for the first time.
  if (number == "P68")
    return spec.returns != 0 || any([](auto& it) { return it.rehooks + it.unread != 0; });
  return number == "P69" && is_order_unknown(spec);
}

}  // namespace zeroproof::mutation
