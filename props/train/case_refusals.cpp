#include "props/train/case_refusals.h"

#include "props/train/case_detours.h"
#include "props/train/case_modes.h"
#include "props/train/case_shape.h"

namespace zeroproof::train {
namespace {

// What call k - 1 returns needs a gradient, which a reentrant checkpoint alone does not see to.
bool has_backward(const CaseSpec& spec, const MicroSpec& micro, int k) {
  for (int i = 0; i < k; ++i) {
    const CallSpec& call = spec.calls[static_cast<std::size_t>(i)];
    if (micro.skips != i + 1 && is_trained(spec, call) && call.wrap != 1) return true;
  }
  return spec.input_grad != 0;
}

// Nothing scales its losses, and a window that has begun cannot be scaled any more.
bool is_plainly_unscaled(const CaseSpec& spec) {
  const auto precision = static_cast<Precision>(spec.precision);
  return (precision == Precision::float32 || precision == Precision::bf16) && spec.engines == 1 &&
         spec.owns_scale + spec.masters == 0;
}

// Nothing of the second engine comes behind the hook in this micro-batch, nor looks at it.
bool is_alone(const CaseSpec& spec, const MicroSpec& micro) {
  return spec.takes_turns + spec.needs_all + spec.has_floor + spec.first_ranks == 0 &&
         micro.repeats + micro.outstanding + micro.clears + micro.block + spec.sets_boundary == 0 &&
         micro.peeks + micro.asks + micro.detour + micro.shortage + micro.aborts_inside == 0 &&
         micro.keeps + micro.by_hand + micro.past_engine + micro.misuse == 0;
}

}  // namespace

std::string misuse_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const bool has_no_sync = spec.stage < 2 && spec.is_unmanaged == 0;
  const bool has_coalesce = spec.stage > 0 && spec.is_unmanaged == 0;
  const bool is_scaled = static_cast<Precision>(spec.precision) == Precision::fp16;
  switch (static_cast<Misuse>(micro.misuse)) {
    case Misuse::step_in_block:
      return has_no_sync || has_coalesce ? "" : "a step in a block that there is none of";
    case Misuse::set_boundary:
      return spec.is_unmanaged != 0 ? "" : "a boundary that may be set";
    case Misuse::unscaled_manual:
    case Misuse::unscaled_again:
      return is_scaled && spec.stage > 0 && spec.counts_nothing == 0 && spec.engines == 1 &&
                     spec.is_tiled == 0 && spec.skips_frames == 0
                 ? ""
                 : "a loss that needs no scale";
    case Misuse::late_loss_scale:
      return is_scaled || is_plainly_unscaled(spec) ? "" : "a loss that needs no scale";
    case Misuse::manual_backward:
    case Misuse::past_manual:
      return manual_backward_problem(spec, static_cast<Misuse>(micro.misuse));
    case Misuse::others_loss:
      return spec.stage == 0 && spec.takes_turns != 0 ? "" : "a loss that both may have";
    case Misuse::unscaled_second:
      return spec.scales_second != 0 && spec.takes_turns == 0 ? "" : "a loss that needs no scale";
    case Misuse::unfed_leaf:
    case Misuse::moved_weight:
      return stage3_misuse_problem(spec, static_cast<Misuse>(micro.misuse));
    default:
      return micro.misuse >= 0 && micro.misuse <= static_cast<int>(Misuse::others_loss)
                 ? ""
                 : "a number out of range";
  }
}

// A hook of the user that calls engines; what a tile or a skipped frame does there is its own.
std::string interrupt_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const auto interrupt = static_cast<Interrupt>(micro.interrupt);
  if (micro.interrupt < 0 || interrupt > Interrupt::breaks || micro.interrupt_at < 0 ||
      micro.interrupt_at > static_cast<int>(spec.calls.size()))
    return "a micro-batch that names no call";
  if ((interrupt == Interrupt::none) != (micro.interrupt_at == 0))
    return "a hook that does nothing";
  if (interrupt == Interrupt::none) return {};
  // Below stage 2 a window's last micro-batch reduces what the others left, and has to come.
  if (micro.skips == micro.interrupt_at || !has_backward(spec, micro, micro.interrupt_at))
    return "a hook of a call that does not run";
  if (interrupt == Interrupt::aside) return {};
  if (spec.is_tiled != 0 || spec.skips_frames != 0) return "a hook of what has none";
  if (interrupt == Interrupt::own && spec.stage == 3)
    return "a forward of partitioned parameters in their backward";
  // Below stage 2 its local sums wait for a backward of its own.
  const bool fails = interrupt == Interrupt::fails || interrupt == Interrupt::breaks;
  const bool is_of_second =
      spec.engines == 2 && fails && (spec.stage >= 2 || spec.accumulation == 1);
  if (interrupt == Interrupt::steps && !is_alone(spec, micro))
    return "a step that something comes behind";
  const bool is_with_second = interrupt == Interrupt::other || interrupt == Interrupt::joined ||
                              interrupt == Interrupt::steps;
  const bool is_alone_in_window = spec.accumulation == 1 && micro.repeats + micro.outstanding == 0;
  // What the second one had before would be cleared with it.
  const bool is_first = micro.aborts + micro.aborts_on_loss == 0 || micro.is_uncleared == 0;
  if (interrupt == Interrupt::breaks && !(is_of_second && is_alone_in_window && is_first))
    return "no backward of a second engine";
  if (!is_with_second && !is_of_second) return spec.engines == 1 ? "" : "whose turn it is";
  return spec.engines == 2 && spec.is_manual == 0 && spec.is_unmanaged == 0
             ? ""
             : "no second engine with a backward of its own";
}

}  // namespace zeroproof::train
