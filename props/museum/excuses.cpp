#include "props/museum/excuses.h"

#include <algorithm>

namespace zeroproof::museum {
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

}  // namespace

bool is_excused(const CaseSpec& spec, std::string_view number) {
  // A backward inside another of the same engine has an epilogue of its own.
  if (number == "P1" || number == "P2") return trains_inside(spec);
  if (number == "P42") return trains_inside(spec) || completes_often(spec);
  // It counts from the first step on, and others took that.
  if (number == "P58") return spec.first_ranks != 0;
  // Autocast's cast of a weight is differentiated behind the module whose input has come.
  if (number == "P62")
    return static_cast<train::Precision>(spec.precision) == train::Precision::autocast;
  // A loss that nobody scaled is refused before its backward does anything.
  // And it waits for what is on the way, whoever comes next.
  if (number == "P56" || number == "R20")
    return std::ranges::any_of(spec.micros, train::is_refused_late);
  const auto runs_short = [](const train::MicroSpec& micro) { return micro.shortage != 0; };
  // What persists, or is returned, an engine tells behind its first step. A recompute that has no
  // room tells no end of its modules, as one that stops early.
  if ((number == "P78" && spec.persistence + spec.returns != 0) ||
      (number == "P65" && has_checkpoints(spec)))
    return std::ranges::any_of(spec.micros, runs_short);
  // An abort takes the callback of every engine in the backward along, without a call of its own.
  const auto rehooks = [](const train::MicroSpec& micro) { return micro.rehooks != 0; };
  const auto skips_read = [](const train::MicroSpec& micro) { return micro.unread != 0; };
  // What the user has gathered around a backward stays until his context ends.
  const auto spans = [](const train::MicroSpec& micro) { return micro.spans != 0; };
  if (number == "P63" && std::ranges::any_of(spec.micros, spans)) return true;
  // An engine's forward in a checkpoint is part of a backward that began without it.
  const auto wraps = [](const train::MicroSpec& micro) { return micro.wrapped != 0; };
  if (number == "P17" && spec.is_manual != 0 && std::ranges::any_of(spec.micros, wraps))
    return true;
  // Of a weight that a module of its own reads late, no recorded fetch tells the use.
  if (number == "P69" && spec.reads_late != 0) return true;
  // Of what a context in the middle of a backward has given up, none tells the order.
  const auto changes = [](const train::MicroSpec& micro) {
    return static_cast<train::Interrupt>(micro.interrupt) == train::Interrupt::changes;
  };
  if (number == "P69" && std::ranges::any_of(spec.micros, changes)) return true;
  // Open: behind a forward that had no room, more than the bound counts as gathered ahead (rare).
  if (number == "P69" && std::ranges::any_of(spec.micros, runs_short)) return true;
  // A weight that a layer returns is a new use of it, which no recorded order knows. So is one that
  // is read for the first time.
  if (number == "P68")
    return spec.returns != 0 || std::ranges::any_of(spec.micros, rehooks) ||
           std::ranges::any_of(spec.micros, skips_read);
  return number == "P14" && std::ranges::any_of(spec.micros, train::has_abort);
}

}  // namespace zeroproof::museum
