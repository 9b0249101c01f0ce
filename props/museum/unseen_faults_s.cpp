#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"S01",
     "a leaf module's own parameters are collected from itself and its direct children alone, so "
     "those of its grandchildren, which have no hooks below a leaf, are fetched by nobody"},
    {"S02",
     "a gather context without modifier_rank that refuses a modification (F7) takes it over into "
     "the slices all the same"},
    {"S03",
     "load_checkpoint of stage 3 finds the optimizer states of a parameter by the beginning of "
     "their names, so a parameter gets the states of another one of its size whose name begins "
     "with its own"},
    {"S04",
     "step() where the user has paused the boundary by set_gradient_accumulation_boundary(false), "
     "at what the counters call the window's last micro-step, ends the window: its gradients are "
     "dropped"},
    {"S05",
     "an exception of a child module's forward that its parent catches gives up the parent and all "
     "around it, too, as if nobody caught it on the way"},
    {"S06",
     "stages 1 and 2 with overlap_comm, where update and gather go by parts: the first part alone "
     "is divided by loss scale and clipping"},
    {"S07",
     "the epilogue of a backward inside no_sync does not collect, so its gradient stays in .grad, "
     "where a later backward that fails takes it along"},
    {"S08",
     "zero_grad drops the values that a retained graph keeps, so its next backward gathers again "
     "what it had"},
    {"S09",
     "with skipped frames a guard's read gathers its parameter when no forward is under way, where "
     "it should gather nothing"},
    {"S10",
     "the cast of a gradient to the master's dtype that an update needs is kept behind the step"},
    {"S11",
     "the loss scale of fp16 torch_autocast (GradScaler) stops at 1, the floor that only the fp16 "
     "scaler has"},
    {"S12", "save_checkpoint drops the gradients of the window that is under way"},
    {"S13",
     "the end of an inner gather context forgets that the context around it has gathered its own "
     "parameters"},
    {"S14", "zero_grad() drops the values that a retained graph keeps in stage 3"},
    {"S15",
     "the gradient norm of stage 3 counts persistent parameters on rank 0 alone, as if every rank "
     "had their whole gradient; each has a slice"},
    {"S16",
     "an engine that needs a loss scale does not ask for it (E2) where another engine's backward "
     "goes through it"},
    {"S17",
     "a boundary without a backward since the last step is left out: no update by the moments, no "
     "count; and a rank that had no data does not come to the step's reduction"},
    {"S18", "backward(create_graph) does not retain the graph that it goes through"},
    {"S19",
     ".grad of a trainable parameter that is in no parameter group is never cleared in stages 0 to "
     "2: memory stays and it adds up"},
    {"S20",
     "whether no_sync holds for a backward is decided by where its forward was (as in DDP), not by "
     "where the backward is"},
    {"S21",
     "a loss scale that is set after initialization (override_loss_scale) does not register the "
     "gradient hooks that apply it where nothing was scaled before, so a backward inside the "
     "forward goes unscaled"},
    {"S22",
     "no_sync is refused in every ZeRO stage from 1 on, though stage 1 keeps whole gradients"},
    {"S23", "the overflow check counts infinities and no NaN"},
    {"S24",
     "the latest checkpoint is taken to be the last of the tags as texts (\"global_step9\" behind "
     "\"global_step11\"), and not what was saved last"},
    {"S25",
     "each parameter group is clipped by the norm of its own gradients, and not by that of all "
     "(stages 0 to 2)"},
    {"S26", "stage 0 reduces gradients in every micro-batch, and not at the boundary alone"},
    {"S27",
     "zero_grad() clears .grad alone, and leaves local sums and what is reduced already in the "
     "window"},
    {"S28",
     "the dtype of gradients on the wire follows the default list of safe modules, whatever "
     "torch_autocast.lower_precision_safe_modules says"},
    {"S29",
     "the divided loss that backward() returns is made with gradients enabled, so it keeps its "
     "graph"},
    {"S30",
     "stage 3 looks for overflow sub-group by sub-group, so that those before the one that "
     "overflows have been updated when the step is skipped"},
    {"S31",
     "stages 0 to 2 clip every parameter group by the norm of its own gradients instead of one "
     "norm over all groups"},
    {"S32",
     "under torch_autocast an empty lower_precision_safe_modules list is taken for one that is not "
     "given, so the default classes travel in low precision"},
    {"S33",
     "step() refuses (E23) while any engine of the process is inside its backward, not just its "
     "own"},
    {"S34",
     "in stages 0 to 2 rank 0's weights are broadcast only after the optimizer has made its master "
     "copies"},
    {"S35",
     "stage 3 divides by the number of ranks behind the reduce-scatter instead of before it, so "
     "that the float16 sum overflows where the mean does not"},
    {"S36",
     "stage 1 reduces gradients in every micro-batch, not once at the accumulation boundary"},
    {"S37",
     "a load without a tag takes the checkpoint whose name sorts last as text instead of the one "
     "that `latest` names"},
    {"S38",
     "zero_grad() by the user sets micro_steps back to the beginning of the accumulation window"},
    {"S39", "the engine holds on to the outputs of its last forward, and so to their graph"},
    {"S40",
     "in save_checkpoint only the rank that writes collects the partitioned state, though "
     "collecting it is a collective"},
    {"S41",
     "global_samples in unmanaged accumulation grows by the configured accumulation steps and "
     "not by the backwards that the window really had"},
    {"S42",
     "needs_scaler() forgets a loss scale set by override_loss_scale, so a manual backward of "
     "an unscaled loss is no longer refused"},
    {"S43",
     "stage3_module_granularity_threshold is compared with all elements below a module instead "
     "of with the elements per module, so a fine-grained module does not become a leaf"},
    {"S44", "save_checkpoint leaves out the frozen parameters, which belong to no parameter group"},
    {"S45", "grad_norm is told still multiplied by the loss scale where clipping is off"},
    {"S46",
     "an infinite or NaN gradient norm is kept as it is and not replaced by -1, so that an "
     "infinite one clips every finite gradient to zero"},
    {"S47",
     "loading a checkpoint of SGD does not restore the step count in stages 0 to 2, so the "
     "first update after it overwrites the momentum as if it were the very first"},
    {"S48",
     "inside a user's autocast region the engine's own torch_autocast takes that region's dtype "
     "instead of the configured one"},
    {"S49",
     "flat groups of stages 0 to 2 are padded to equal shares alone and not to the start "
     "alignment of two elements per rank, so slices begin at odd elements"},
    {"S50",
     "the gradient hooks of stage 0 (and of an engine without the count API) do not refuse a "
     "manual backward, so a loss term that bypasses the outputs goes through, or changes .grad "
     "before E1 comes"},
    {"S51",
     "A loss scale of the caller's own (custom_loss_scale or override_loss_scale) does not "
     "count as one that needs engine.scale(), so a manual backward of an unscaled loss is "
     "accepted and the step divides its gradients by the scale all the same."},
    {"S52",
     "communication_data_type is not honoured in stage 3: gradients are reduced in the "
     "model's dtype."},
    {"S53",
     "gradient_allreduce_op: sum is honoured in ZeRO stages 1 and 2 alone; stage 0 still "
     "divides by the number of ranks."},
    {"S54",
     "SGD takes its first step in a new engine for the first of the training, so the momentum "
     "that a checkpoint brought is overwritten by the gradient."},
    {"S55",
     "bf16.check_grad_overflow: false is not looked at in stages 1 and 2: gradients are "
     "checked all the same."},
    {"S56",
     "A checkpoint with another number of parameter groups than the engine's is loaded in "
     "place of being refused."},
    {"S57",
     "The memory-efficient linear of stage 3 gives no gradient to the bias where the weight "
     "is frozen."},
    {"S58",
     "is_gradient_accumulation_boundary() gives the copy that the last forward or backward "
     "left, in place of asking the counters."},
    {"S59",
     "step() inside coalesce_grad_reduction is not refused; it updates without the gradients "
     "of the block, and drops them."},
    {"S60",
     "offload_param: cpu is lost where the slices of a sub-group are joined: the trained "
     "parameters' slices lie on the device."},
    {"S61",
     "without managed accumulation a step counts as samples the configured accumulation "
     "steps, not the backwards that there were"},
    {"S62",
     "backward and scale refuse a loss of one element that has dimensions, because they ask "
     "for none instead of one element"},
    {"S63",
     "the first SGD update takes the momentum buffer of zeros for one that has a history, so "
     "the first gradient is dampened"},
    {"S64", "the granularity threshold makes containers leaf modules too"},
    {"S65",
     "a region of autocast around forward decides the dtype, though the engine has a "
     "torch_autocast of its own"},
    {"S66",
     "a step that overflows keeps its gradients in stages 0 to 2, so the next window is added "
     "to infinities"},
    {"S67", "a checkpoint with another number of parameter groups is loaded without a word"},
    {"S68",
     "the custom loss scale of the options is ignored where the configuration has a fixed one"},
    {"S69",
     "without use_multi_rank_bucket_allreduce stages 1 and 2 reduce to the owners, even where "
     "reduce_scatter is off"},
    {"S70",
     "full_gradients of stage 3 divides by the loss scale with fp16 only, not with float16 "
     "autocast or a scale of one's own"},
    {"S71",
     "With several sub-groups in stage 3 one step count serves them all: each sub-group's update "
     "counts it on, so bias corrections (and the saved step) are those of later steps."},
    {"S72",
     "The gradients' norm is summed up in the gradients' own dtype: half-precision gradients have "
     "a rounded norm (in fp16 an infinite one), and are clipped by it."},
    {"S73",
     "A parameter without elements loses its shape when it is bound to the flat buffer (stages 0 "
     "to 2): {0, 4} becomes {0}, and the module's next forward fails."},
    {"S74",
     "What a recompute attributed to a module whose post-backward never fires (its input needs no "
     "gradient) is not given back at the end of the backward: the frozen parameters of a "
     "checkpointed block stay whole across micro-batches, until the optimizer's step."},
    {"S75",
     "With bf16 in stage 0 a checkpoint's optimizer state is not loaded: moments and the step "
     "count stay those of the engine that loads."},
    {"S76",
     "The forward of a leaf module is refused where none of its inputs needs a gradient, also "
     "where no backward is to come: evaluation without gradients fails."},
    {"S77",
     "Adam's eps joins the root of the second moment before its bias is corrected, so that early "
     "steps have a larger eps than configured."},
    {"S78",
     "A load gives optimizer states to parameters by their number through all parameter groups, "
     "and not by the parameter itself, wherever the sizes agree: with groups that interleave, "
     "moments land on other parameters (stages 0 to 2)."},
    {"S79",
     "A load rounds optimizer moments to the dtype of the parameters, though they are kept in "
     "float32 (stage 3)."},
    {"S80",
     "With autocast's GradScaler and clipping, an overflow is found and lowers the scale, but the "
     "update is made all the same: what was found before clipping is not handed on to the "
     "optimizer."},
    {"S81",
     "The gradient norm of stage 0 counts every gradient once a rank, as if replicas were shards; "
     "clipping divides by it."},
    {"S82",
     "A step() of a dynamic loss scale throws where no backward has brought a gradient into the "
     "window (stages 0 to 2), instead of taking zeros."},
    {"S83",
     "With an offloaded optimizer stage 3 begins the list of gradients for the optimizer anew with "
     "every parameter, so that of each sub-group only the last parameter's gradient reaches the "
     "update; the others are updated with zero."},
    {"S84",
     "With an offloaded optimizer stages 1 and 2 count a parameter that several ranks share in the "
     "norm only on the rank on which it begins: the rest of it is missing, and clipping with it is "
     "too weak."},
    {"S85",
     "The count of backwards that a window may have is only begun anew by the update: a window "
     "that was given up by zero_grad() (or a second loss of a micro-batch) makes the next backward "
     "an error."},
    {"S86",
     "While reductions are put off (coalesce_grad_reduction), stage 3 does not release the "
     "parameters of the root module itself behind forward and backward: they stay whole until the "
     "step."},
    {"S87",
     "Half-precision data is scaled in pairs and the number of pairs is rounded down: a bucket or "
     "oversized gradient of a single half element is summed over the ranks but not averaged."},
    {"S88",
     "load_checkpoint() takes a rank whose shard of a parameter group is alignment padding alone "
     "for a damaged checkpoint, and throws on that rank (stages 1 and 2)."},
    {"S89",
     "Behind every step of stage 3 the persistent parameters are gathered by an all-gather each "
     "instead of one for all of them."},
    {"S90",
     "Data parallel (stage 0) with accumulation reduces only what the boundary's backward used: "
     "the sum that earlier micro-batches of the window left for a parameter which the last one "
     "does not reach is left out of the reduction."},
    {"S91",
     "A bucket of a single gradient that is sent in another dtype than its own is reduced in a "
     "copy which nobody copies back: each rank keeps its own local share."},
    {"S92",
     "Stage 3 places the parameters' slices by offload_optimizer instead of offload_param: with "
     "offload_param alone they stay on the device."},
    {"S93",
     "When stages 1 and 2 load optimizer states, the share of each rank is cut without the "
     "alignment of the partitions: moments of the ranks behind the first belong to other elements "
     "wherever the flat group is padded."},
    {"S94",
     "Stage 3's memory-efficient linear is not put in for a model that was there before the "
     "engine: the plain linear saves views of whole weights, which stay on the device between "
     "forward and backward after their release."},
    {"S95",
     "Under fp16 autocast, whose scaler is a GradScaler, a step for which no backward came is an "
     "error instead of a step with zero gradients."},
    {"S96",
     "The backward of a module that recomputed gives back the frozen parameters of the recompute "
     "also where they are persistent: they are not resident between backwards and are gathered "
     "again."},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_s() {
  return kFaults;
}

}  // namespace zeroproof::museum
