#pragma once

#include <cstdint>

namespace zeroproof::train {

// What the numbers of a case mean where they are no counts (props/train/case_spec.h).

enum class NarrowWire : std::uint8_t { none, bfloat16, float16 };

enum class Wrap : std::uint8_t { none, reentrant, non_reentrant };

// What the user does with weights, in a context that gathers them in stage 3.
enum class Gathers : std::uint8_t {
  none,
  looks,
  first_changes,  // rank 0 alone, whose changes all take over; the last rank
  last_changes,
  breaks,       // looks, and throws
  unannounced,  // the last rank changes some and names nobody: refused
  nested,       // looks at one half inside a context of the other; one that overlaps is refused
  discards,     // the first rank changes some, and an exception takes that back
  runs,         // a forward without gradients inside the context
  changes_and_runs,  // the same behind changes that every rank makes; the first one's take over
  looks_rounded,     // autocast, stage 3: looks at what the wire has made of them
  holds_none         // stage 3: looks where all of them are NaN for a while
};

// What happens to checkpoints before a micro-batch.
enum class Restores : std::uint8_t {
  none,
  window,      // saved, the whole window trained for nothing, and loaded
  unstepped,   // the same without its last step: the gradients are cleared
  tagged,      // the same, and what it led to is saved before the earlier one is loaded
  saved,       // alone; or behind one that was cut short
  damaged,     // saved, and a load of it is refused for a damaged file
  missing,     // a load of nothing is refused
  misfit,      // saved as an engine with other parameters or groups would, which is refused
  full_disk,   // saved, and a save is refused whose files fail; the one before is as it was
  unreadable,  // saved, and a load is refused because the files of one rank fail
  outdated     // the same load of what an earlier one has saved
};

// Where else in a micro-batch the user looks at all weights.
enum class Looks : std::uint8_t {
  none,
  before_backward,  // of each of its forwards
  between           // two backwards
};

// A term of the loss that reaches layer 0 past the engine's forward.
enum class Bypass : std::uint8_t {
  none,
  layer,  // calls it
  weight  // a linear function of its weight, in a context that gathers it and is over by backward
};

enum class Losses : std::uint8_t { both, first, second, sum };

// Around all of a micro-batch, its forward or its backwards alone.
// First: no_sync around the first of two rounds.
enum class Block : std::uint8_t {
  none,
  coalesced,
  no_sync,
  coalesced_backwards,
  no_sync_first,
  no_sync_forward,
  no_sync_backwards
};

// Interleaved: of two heads, a backward of each forward and then the others, the later first.
// Ahead: the next micro-batch's forward comes before the step behind this one. Three: a backward
// that retains of a first forward, both of a second one, and one that retains of a third.
enum class Outstanding : std::uint8_t {
  none,
  in_order,
  reversed,
  summed,
  interleaved,
  ahead,
  three
};

// What an engine refuses, in the words of docs/spec/zero.md 2.20.
enum class Misuse : std::uint8_t {
  none,
  step_in_block,    // step_inside_no_sync
  no_sync,          // no_sync_not_allowed: with partitioned gradients, or nested
  coalesce,         // coalesce_not_allowed: in stage 0, unmanaged, or nested
  loss_of_vector,   // backward_of_invalid_loss and, where losses are scaled, scale_of_invalid_loss
  set_boundary,     // boundary_set_in_unmanaged_accumulation: unmanaged
  unscaled_manual,  // backward_without_loss_scaling
  loss_scale,       // of zero
  late_loss_scale,  // fp16: another one than that of the window's gradients
  manual_backward,  // manual_backward_unsupported: in stage 0, or where the autograd counts nothing
  unfed_leaf,       // stage 3: a leaf module whose input needs no gradient
  moved_weight,    // gathered_parameter_left_device: one that all ranks take over leaves the device
                   // meanwhile
  unscaled_again,  // backward_without_loss_scaling behind scale_of_invalid_loss: what was refused a
                   // scale has none
  unscaled_second,  // backward_without_loss_scaling of the second engine, by a backward of the
                    // first
  capture,          // of an iteration, where no device can capture: nothing of it runs
  past_manual,      // as manual_backward, of a loss that no output of the engine is in
  others_loss  // manual_backward_unsupported in stage 0: the second engine's backward of the first
               // one's loss
};

// What the user does with engines where most programs do not (`detour_at`).
enum class Detour : std::uint8_t {
  none,
  save,
  load,   // of what is saved right before it; not in a forward
  clear,  // zero_grad
  peek,   // reads masters and optimizer states
  look    // at all weights, in a context; in a forward
};

// What a hook of the user does in the middle of a backward.
enum class Interrupt : std::uint8_t {
  none,
  step,     // refused
  save,     // a checkpoint
  forward,  // once more, without gradients
  other,    // forward and backward of the second engine, for a loss of its own
  looks,    // at masters and optimizer states
  aside,    // a backward of something that no engine knows
  fails,    // the same, or one of the second engine, which throws
  rescale,  // fp16: another loss scale: refused
  own,      // forward and backward of the same engine
  joined,   // one of the second engine, which throws, where both have one loss
  changes,  // of weights in a context, past the autograd; another one behind it undoes them
  steps,    // `other`, and the second engine's step
  breaks    // `other`, whose backward throws behind a call of its own
};

// In which of the user's calls the device has no more memory. step() is none of them: what fails in
// the middle of an update has changed some weights, and only a checkpoint brings them back.
enum class Shortage : std::uint8_t {
  none,
  evaluation,  // `idle_forward` 1
  forward,
  backward,
  epilogue,  // of an engine.backward: behind its last hook
  gathers,   // what `gathers` says, entered or left
  getters    // `peeks`
};

// The dtype of master weights.
enum class Masters : std::uint8_t {
  wide,               // float32
  narrow,             // bf16, on the host; the optimizer's states have it, too
  narrow_with_states  // the same by bf16_optimizer_states, wherever they are
};

// Who says that the experts are a leaf module.
enum class LeafBy : std::uint8_t { call, name, suffix, class_name };

}  // namespace zeroproof::train
