#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"T01",
     "what no graph claims any more is released by the eager fallback although a gather context of "
     "the user has it open"},
    {"T02",
     "a checkpoint's loss scale is restored whatever kind of scale the configuration asks for"},
    {"T03", "load_checkpoint drops the window before it knows that there is a checkpoint"},
    {"T04",
     "the first parameter that does not fit into stage3_model_persistence_threshold ends the "
     "search for persistent ones, smaller ones behind it included"},
    {"T05",
     "where nothing is reduced yet full_gradients moves on in its list only for parameters that "
     "have a gradient"},
    {"T06",
     "the error of a custom loss scale that cannot be used is lost, and the engine is made without "
     "it"},
    {"T07", "scale() notes that it was called before it looks at the loss"},
    {"T08",
     "a module's parameters are released before those that it returns are adopted by the module "
     "around it"},
    {"T09",
     "the event that a bucket's buffer is free is recorded behind the collective, before the "
     "rank's own part is copied out of it"},
    {"T10", "a gather context gathers before it checks that it overlaps no other"},
    {"T11",
     "the parts of a slice that are gathered while the next one is updated are counted rounded "
     "down, so the shorter last part is updated by its owner and never gathered"},
    {"T12",
     "initialize overwrites the validation's error with the outcome of setting the custom loss "
     "scale"},
    {"T13", "parameters that the caller left out of all groups join the first one"},
    {"T14",
     "engine.backward marks the loss as scaled and does not take the mark back, so the next manual "
     "backward passes for scaled"},
    {"T15",
     "the sanity check of a gather context compares only what this rank owns, so a change in "
     "another rank's slice is not seen"},
    {"T16",
     "a parameter kept for a retained graph that is gathered anew still counts as kept, and is "
     "emptied under its user when that graph goes"},
    {"T17", "a forward without grad invalidates the recorded order, as it has seen no backward"},
    {"T18",
     "the reduced slices are recorded on the reduction stream only where this rank reads some of "
     "them, so a rank that owns nothing of a bucket frees the output of a reduce-scatter under "
     "way"},
    {"T19",
     "clearing what a save that was cut short has left matches \"latest\" without its dot and "
     "removes the pointer to the last checkpoint"},
    {"T20",
     "a gradient that would fill the bucket exactly counts as too large for it, and the bucket is "
     "flushed before"},
    {"T21",
     "a module that reads another's parameter while a user's gathered_parameters has it whole is "
     "not noted as its user"},
    {"T22",
     "registering an external parameter again, which the module has already, invalidates the "
     "recorded order"},
    {"T23",
     "the first engine to go takes the memory-efficient linear with it, though other engines of "
     "the process still use it"},
    {"T24", "a suffix in leaf_module.name_suffixes matches anywhere in a module's name"},
    {"T25",
     "gathering for a user does not give back what its earlier collectives have made whole when a "
     "later one fails"},
    {"T26", "a graph task does not learn that a nested one with a prologue has failed inside it"},
    {"T27",
     "optimizer states of a checkpoint that the loading optimizer does not have are left out "
     "without an error"},
    {"T28",
     "override_loss_scale with the scale that is in force returns at once, and the scale stays the "
     "dynamic scaler's"},
    {"T29", "the second bucket buffer is allocated without overlap_comm, too"},
    {"T30",
     "gathering ahead does not count what retained graphs keep whole against "
     "stage3_max_live_parameters"},
    {"T31",
     "a loss scale that shrinks gets its whole hysteresis back, so every second overflow is only "
     "tolerated"},
    {"T32",
     "the gradient norm is asked for only where gradients are clipped, and a step then tells none"},
    {"T33", "no_sync is not asked in the last micro-batch of a window, which reduces all the same"},
    {"T34",
     "reductions to the owners divide by the number of ranks, also where gradients are to be "
     "summed"},
    {"T35", "a checkpoint's micro steps are rounded down to the window's beginning"},
    {"T36",
     "set_gradient_accumulation_boundary(false) does not hold back a boundary that the count has "
     "come to"},
    {"T37",
     "parameters in flight when the recorded order turns out wrong are waited for and then not "
     "given back"},
    {"T38",
     "the tag of a load is dropped on its way to the files, and the latest checkpoint is loaded"},
    {"T39",
     "the room for what a retained graph keeps is compared with each parameter alone, not with all "
     "that is kept"},
    {"T40",
     "a leaf module that is set after the engine was made gets no backward hook, and its "
     "parameters have no other"},
    {"T41",
     "the step reports the gradient norm after clipping (never above gradient_clipping) instead of "
     "the norm before it"},
    {"T42",
     "stage 3 without reduce_scatter predivides by gradient_predivide_factor but does not scale by "
     "factor / ranks after the sum"},
    {"T43",
     "stages 1 and 2 do not gather the flat parameters after a checkpoint was loaded, so each rank "
     "has only its own slice of the loaded weights"},
    {"T44",
     "the dynamic fp16 loss scaler counts the overflowed step itself as stable, so the scale grows "
     "one step early"},
    {"T45",
     "stages 1 and 2 do not mark a local sum as taken when it goes into the bucket, so the next "
     "reduction of the window reduces it again"},
    {"T46", "the overflow check of bf16 gradients is made in stage 2 alone, not in stage 1"},
    {"T47",
     "a stage 3 release does not look at whether a gathered_parameters context of the user holds "
     "the parameter"},
    {"T48",
     "the window of a stage 3 sub-group is allocated in the model's dtype and not in "
     "grad_accum_dtype"},
    {"T49", "a save that fails does not remove its half-written folder"},
    {"T50",
     "a stage 3 backward that fails in a coalesced block drops the sums of the backwards before "
     "it, too"},
    {"T51",
     "the dynamic loss scaler does not count a skipped step as an iteration, so that the scale "
     "grows one step late after every overflow"},
    {"T52",
     "a load restores the loss scaler before the ranks have agreed on the outcome, so that a load "
     "that fails on another rank changes this rank's scale"},
    {"T53",
     "a save writes `latest` before the checkpoint's folder has got its name, so that a save that "
     "fails or crashes between the two leaves `latest` naming a folder that is not there"},
    {"T54",
     "stage 3's search for the next use begins one module too late, so that what the very next "
     "module needs is released and gathered again"},
    {"T55",
     "the sanity check of gathered_parameters compares NaN as a number, so that a parameter that "
     "holds one counts as modified"},
    {"T56",
     "stage 3 notes that the window has a gradient of a parameter only on ranks that own a part of "
     "it, so that full_gradients() gives zeros on the others"},
    {"T57",
     "local sums that an epilogue began before it ran out of memory stay, so that the gradients of "
     "the failed backward count in the next one"},
    {"T58",
     "a step leaves persistent parameters of stage 3 whole, so that they keep the values from "
     "before the update"},
    {"T59",
     "the optimizer's moments are allocated in the model's dtype in place of the master weights'"},
    {"T60",
     "stages 1 and 2 ask whether a gradient joins its bucket entry before they flush the bucket, "
     "and then flush also for one that joins: its entry is gone (std::out_of_range)"},
    {"T61",
     "stage 1 does not drop the local sums that it has just reduced, so the next reduction in the "
     "same window reduces them once more"},
    {"T62",
     "stage 3's gradient bucket, emptied after a failed backward, still marks its parameters as "
     "held, so their next gradients are never reduced"},
    {"T63",
     "loading a checkpoint in stages 0 to 2 rebuilds the master weights from the model's rounded "
     "ones"},
    {"T64",
     "the overflow count is not shared over the tensor-parallel group, so one rank steps (or asks "
     "for the norm) where its neighbour skips"},
    {"T65",
     "stage 3 leaves a coalesced sum behind after reducing it, so the next coalesce block of the "
     "window adds to it and reduces it again"},
    {"T66",
     "loading compares only the number of elements of a tensor with the engine's, not its shape: a "
     "missing refusal"},
    {"T67",
     "a retain_graph backward that fails still keeps the parameters of the modules that were under "
     "way, for a graph that may be gone: they stay whole"},
    {"T68", "step() in the middle of a backward is not refused in stage 0"},
    {"T69",
     "the gather behind an update stops at a group without elements (return in place of continue), "
     "so the groups behind it keep other ranks' old values"},
    {"T70",
     "any step without overflow refills the dynamic scaler's hysteresis, although "
     "consecutive_hysteresis is off"},
    {"T71",
     "the dynamic fp16 loss scaler ignores consecutive_hysteresis: a good step no longer refills "
     "the hysteresis"},
    {"T72",
     "step() inside no_sync is not refused (E7) where the micro-batch is no boundary; it advances "
     "micro_steps"},
    {"T73", "save_checkpoint writes the master weights rounded to the model's dtype"},
    {"T74", "load_checkpoint keeps this engine's own skipped_steps in place of the checkpoint's"},
    {"T75",
     "stage 3: after a step that refuses the smallest loss scale (E22), persistent parameters are "
     "not gathered again and stay partitioned"},
    {"T76",
     "stage 3: what a modifier rank changes of a frozen parameter inside gathered_parameters is "
     "not written to the slices and is lost"},
    {"T77",
     "stage 3: a parameter with exactly stage3_param_persistence_threshold elements is not "
     "persistent (< in place of <=): needless gathers"},
    {"T78",
     "stage 3: the end of a forward leaves the use mark on parameters that are kept for reuse, so "
     "nothing releases them until the step"},
    {"T79",
     "backward(loss, scale_wrt_gas = false) returns the loss divided by the accumulation steps all "
     "the same"},
    {"T80",
     "stages 1 and 2: a group to which no gradient came in this window is not zeroed, and steps "
     "with the gradient of the last window"},
    {"T81",
     "A checkpoint's weights go to the model's slices alone: stage 3's master copies stay what "
     "they were, so the next update starts from them and undoes the load."},
    {"T83",
     "A partitioned parameter is stood for by one number instead of by nothing, so that an "
     "element-wise use of one that nobody gathered broadcasts it instead of failing."},
    {"T84",
     "What one fetch needs is gathered by one all-gather a parameter instead of one for all of "
     "it."},
    {"T85",
     "Updating one sub-group clears the gradients of all, so that later sub-groups are updated by "
     "zeros."},
    {"T86",
     "A checkpoint's number of global steps is not taken over by a load; the engine goes on "
     "counting from its own."},
    {"T87",
     "Where sums are kept in another dtype than the model's, a parameter whose first gradient of "
     "the window comes in a later micro-batch than others' is an error: fresh gradients are "
     "refused beside those that were summed already."},
    {"T88",
     "The window's sum of reduced gradients is as wide as what is sent, not as the accumulation "
     "dtype: every micro-batch's commit rounds it to the communication dtype (stage 3)."},
    {"T89",
     "With an offloaded optimizer, what the modifier rank changed in gathered_parameters is not "
     "written to the slices: after the context the old values are back."},
    {"T90",
     "With a dynamic loss scale, a step whose window had no backward is an error: the scaler "
     "insists on a check for infinities that there was no gradient for."},
    {"T91",
     "Loading a checkpoint fails on a rank that owns no element of a parameter: its shard of the "
     "optimizer's moments is looked for and not found (stage 3)."},
    {"T92",
     "A rank whose own gradients are all zero or none leaves the norm before the ranks add up "
     "theirs: collectives differ between ranks."},
    {"T93",
     "With ZeRO (stages 1 to 3) and a dynamic loss scale, each rank's scaler moves by whether its "
     "own share of the gradient overflowed, before the ranks agree; the step is skipped by all, "
     "but the scale shrinks on some ranks alone, and from then on ranks scale and unscale by "
     "different numbers."},
    {"T95",
     "Coupled weight decay (Adam and SGD, not AdamW) is added while the gradient still has its "
     "loss scale and clip factor, so that dividing by them shrinks the decay as well."},
    {"T96",
     "Stages 0 to 2 with bf16: the update leaves no wider master copy, the float32 master takes "
     "the rounded bf16 value after each update, so that small updates are lost."},
    {"T97",
     "Stage 3: the end of a backward that is not at the boundary does not return to idle, so what "
     "its modules have gathered stays whole until the next forward (memory between "
     "micro-batches)."},
    {"T98",
     "Stages 0 to 2 with SGD and momentum: a step that is skipped for an overflow leaves the "
     "weights, but adds its gradient to the momentum buffer, which ruins the next update."},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_t() {
  return kFaults;
}

}  // namespace zeroproof::museum
