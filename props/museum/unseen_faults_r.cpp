#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"R01",
     "With stage 0 and prescale_gradients the sum is divided by the ranks after the "
     "all-reduce too, so gradients are divided twice."},
    {"R02",
     "step() between boundaries (and after an overflow) returns the gradient norm of the last "
     "window instead of none."},
    {"R03",
     "engine.backward returns the loss as it was differentiated, with the loss scale in it."},
    {"R04",
     "In stages 0 to 2 a checkpoint that is loaded into an engine that has not taken a step "
     "leaves its moments at zero, while weights and step counts are loaded."},
    {"R05",
     "In stage 3 reduce_bucket_size bounds the slices that a rank keeps instead of the "
     "gradients themselves, so a bucket takes as many times the elements as there are ranks."},
    {"R06",
     "Each backward of a micro-batch counts as a micro-step of its own when step() is called, "
     "so a second loss moves the boundary."},
    {"R07",
     "The update does not take out a loss scale that is the caller's own (override_loss_scale "
     "or custom_loss_scale), and clips by the scaled norm."},
    {"R08", "The default tag of a checkpoint counts micro-steps instead of global steps."},
    {"R09",
     "Stage 3 forgets the parameters of a group that are left when its last full sub-group is "
     "closed: they are neither reduced nor updated, and have no master copy."},
    {"R10", "A backward that failed counts as one of the window."},
    {"R11",
     "step() inside a window returns the outcome of the last boundary's step in place of one "
     "that did nothing"},
    {"R12",
     "only the first output of a forward that has a graph gets the engine's hook, so a manual "
     "backward from another output alone has no prologue"},
    {"R13", "engine.backward returns the loss multiplied by the loss scale"},
    {"R14",
     "a class in leaf_module/classes that the model has not is let pass as long as another "
     "class of the list is there"},
    {"R15",
     "all forwards count as one graph for retained parameters, so that a backward of another "
     "forward that does not retain drops what a retained graph keeps"},
    {"R16",
     "with offload_optimizer the CPU Adam decays weights decoupled (AdamW), although "
     "adam_w_mode is false"},
    {"R17",
     "stage 3 with torch_autocast gathers parameters in the dtype in which they are stored "
     "and not in their communication dtype"},
    {"R18",
     "stage 3 lets a gradient join a bucket that has no room for it, because it asks whether "
     "the bucket is full already and does not count what comes"},
    {"R19",
     "a frozen parameter that is listed in a parameter group becomes one of the optimizer's, "
     "and decays"},
    {"R20",
     "a checkpoint stores the engine's global steps, skipped ones too, as the optimizer's "
     "step"},
    {"R21",
     "gathered_parameters takes modifier_rank 0 for none, so that what rank 0 changes inside "
     "is not taken over"},
    {"R22", "engine.backward returns the loss multiplied by the loss scale"},
    {"R23",
     "the end of one retained graph drops the values that other retained graphs keep, so that "
     "their next backward gathers again"},
    {"R24",
     "classes of leaf_module that are given with their module path match no module, and "
     "nothing becomes a leaf"},
    {"R25", "checkpoints hold Adam's learning rate for parameter groups that SGD updates"},
    {"R26",
     "a forward at the first micro-step of a window clears the gradients, so that of several "
     "forwards and backwards before one step the last alone counts"},
    {"R27",
     "with torch_autocast a configured communication_data_type is used for all parameters, in "
     "place of autocast's dtype for safe modules and each parameter's own for others"},
    {"R28",
     "set_gradient_accumulation_boundary(false) is accepted without "
     "managed_gradient_accumulation, and no step updates anything from then on"},
    {"R29", "a step that overflows is not counted in global_steps"},
    {"R30",
     "a trace that was invalidated is never recorded again, so that nothing is gathered ahead "
     "any more"},
    {"R31",
     "Stage 1 leaves the gradient in .grad after a hook has put it into the bucket, as only stage "
     "2 without contiguous_gradients may: the epilogue collects it into the local sum once more "
     "and offers it to the same bucket, so a first contribution at the boundary counts twice."},
    {"R32",
     "The grad scaler's growth tracker is not reset by an overflow, so good steps before the "
     "overflow count towards the next growth of the loss scale."},
    {"R33",
     "Loading a stage 3 checkpoint finds a moment by the beginning of its name, so that exp_avg "
     "gets the values of exp_avg_sq."},
    {"R34",
     "set_leaf_module() does not renew the gradient hooks: parameters of the leaf keep their own "
     "beside the leaf's, and come into the bucket in the order in which this rank used them."},
    {"R35",
     "Stages 1 and 2 without overlap gather the parameters of all groups behind the update of each "
     "group, not once behind all: as many needless rounds of all-gathers as there are further "
     "groups."},
    {"R36",
     "The loss scaler takes over the kind of a new scale before it looks at its value, so an "
     "override_loss_scale() that is refused (zero, negative, not finite) leaves a dynamic scaler "
     "external: from then on overflow does not lower the scale, nor do good steps raise it."},
    {"R37",
     "The epilogue of engine.backward does not forget that there was work nobody has reduced, so "
     "the engine takes the next graph task that is none of its business and has a nested one "
     "(another model's reentrant checkpoint) for its own: an epilogue, and with a loss scale E2 "
     "out of a foreign backward."},
    {"R38",
     "set_leaf_module() does not register the gradient hooks anew, so parameters of the new leaf "
     "are bucketed by hooks of their own as well as by the leaf's: ranks that use different "
     "experts fill and flush their buckets in different orders and reduce the gradients of "
     "different parameters into each other."},
    {"R39",
     "In stages 1 and 2 the all-reduce among sequence-parallel ranks is not widened to float32: "
     "gradients travel in communication_data_type (or the model's half precision) and are rounded "
     "to it."},
    {"R40",
     "Saving a checkpoint leaves out tensors without elements, so a model that has such a "
     "parameter is saved without complaint and its checkpoint cannot be loaded, not even by the "
     "engine that wrote it."},
    {"R41",
     "Stage 2 with contiguous_gradients off: a parameter whose hook fires again in one backward "
     "while its bucket still holds it is added to its entry, though that entry is .grad itself, "
     "which autograd has added up already: the sum counts twice."},
    {"R42",
     "The scale asked for by engine.scale(loss) is forgotten at the end of any outermost backward, "
     "not only of one that failed: another engine's backward (or any unrelated one) between "
     "scale() and the backward by hand makes that one refused with E2."},
    {"R43",
     "Stage 3, retained graphs: when one graph ends, the account of what is kept for retained "
     "graphs is cleared although another graph is still retained, so what is kept grows beyond "
     "stage3_max_live_parameters."},
    {"R44",
     "The clip coefficient is computed from the norm of the gradients that still have the loss "
     "scale: the threshold is effectively gradient_clipping / loss_scale, and gradients below it "
     "are clipped."},
    {"R45",
     "save_checkpoint of stage 3 partitions all parameters before it writes and does not gather "
     "the persistent ones again: they are gathered anew by the next forward."},
    {"R46",
     "What is left of a backward at its epilogue (a module whose inputs need no gradient) is given "
     "back whole, persistent parameters too, so that every further micro-batch of the window "
     "gathers them again."},
    {"R47",
     "A checkpoint's state is matched with the optimizer's moments by the beginning of its key, so "
     "that loading exp_avg_sq overwrites exp_avg as well (stage 3)."},
    {"R48",
     "With contiguous_gradients off a gradient that is in the bucket stays in .grad in stage 1 as "
     "in stage 2; the epilogue collects it as a local sum and adds it to the bucket once more, "
     "twice the gradient."},
    {"R49",
     "set_leaf_module() leaves the gradient hooks of the parameters below the new leaf where they "
     "were: each is offered by its own hook and once more by the leaf's, in an order that depends "
     "on which of them the rank used."},
    {"R50",
     "The count of non-finite values is set to nothing before each shard, so that the overflow "
     "decision knows the last parameter group (stage 3: sub-group) alone and an infinite gradient "
     "in an earlier one is applied."},
    {"R51",
     "A gathered parameter takes the version of its new storage instead of keeping the tensor's: a "
     "weight that is changed in place in gathered_parameters() between a forward and its backward "
     "passes the check of the saved tensors, and the backward computes with the changed weight."},
    {"R52",
     "Loading a checkpoint takes back what set_gradient_accumulation_boundary() has set, as if the "
     "loaded counters alone told the boundary: a window that the user holds open steps at its "
     "first micro-batch."},
    {"R53",
     "The note that scale() was called is reset by every forward, not by the backward that it is "
     "for: a forward (an evaluation, the next micro-batch) between scale(loss) and its manual "
     "backward makes that backward fail with E2."},
    {"R54",
     "An overflow of bf16 gradients is told and counted as skipped, but the step is taken all the "
     "same: only an engine with a loss scale, which could lower it, skips."},
    {"R55",
     "Stage 3 clears the window of unused parameters only in sub-groups for which no gradient came "
     "at all: a parameter without a gradient in this window, beside one that has some, is updated "
     "once more with what an earlier window left."},
    {"R56",
     "A backward inside another one that fails keeps its owed epilogue, as if the one around it "
     "settled it: where the failure is caught in the outer hook, step() is refused with E23 "
     "although all backwards are over."},
    {"R57",
     "With overlap_comm the hooks of stage 1 offer gradients to the bucket in every micro-batch "
     "and not at the boundary alone, so a backward that fails takes those of the micro-batches "
     "before it with it."},
    {"R58",
     "A parameter that a module of a safe class shares with one of another class gets the wire "
     "dtype of whichever module comes last: its gradient is not reduced in autocast's dtype."},
    {"R59",
     "The end of a nested graph task (a reentrant checkpoint) already ends the graphs that the "
     "backward around it is passing: what an earlier retain_graph backward kept is given up before "
     "it is reached, and gathered again."},
    {"R60",
     "load_checkpoint leaves the engine's own number of micro-steps in place of the checkpoint's: "
     "an engine that was in the middle of a window takes its next step at the wrong micro-batch."},
    {"R61",
     "Any graph task that fails, also a nested one that the user catches, takes back the mark that "
     "the loss was scaled: the backward around it ends with E2."},
    {"R62",
     "The gradient norm is returned before the sum over the tensor-parallel group where the data "
     "group is one rank ('nobody adds to it'): every tensor-parallel rank clips by the norm of its "
     "own part."},
    {"R63",
     "The policy keeps the epilogue that a failed graph task owed: after a loss.backward() that "
     "failed and was caught, zero_grad() and a complete backward, every step is refused with E23."},
    {"R64",
     "Before an update stage 3 leaves out sub-groups that got no gradient in this window when it "
     "zeroes what nothing contributed to, although the update reads them: the last step's gradient "
     "is applied once more, and is in the norm."},
    {"R65",
     "Without a loss scaler a backward does not mark the window as having gradients: "
     "override_loss_scale() from none is accepted in the middle of a window, and what came before "
     "it is divided by a scale that it never got."},
    {"R66",
     "With reduce_scatter (averaged before the sum) stage 1 divides by gradient_predivide_factor "
     "as well, and does not multiply by it behind the sum: gradients are too small by the factor."},
    {"R67",
     "The generation of a checkpoint that is saved again under its tag is one more than the number "
     "of those that are there, and not than the newest of them: as older ones are removed, the "
     "third save meets the second one's folder and fails."},
    {"R68",
     "In stage 3 an abandoned backward empties the buckets and leaves .grad as it is: the backward "
     "that is made anew adds to it, so that its gradient counts twice."},
    {"R69",
     "Whether a leaf module has anything to reduce is asked of its first parameter alone: a leaf "
     "whose first parameter is frozen reduces none of the others, whose gradients are lost."},
    {"R70",
     "The final callback of a manual backward runs the epilogue only if a gradient hook told of "
     "work, though its prologue owes one: where the stage has no gradient hooks the epilogue is "
     "left out and the step is refused (E23)."},
    {"R71",
     "Frames skipped by the compiler: a forward gives back every whole parameter at its beginning "
     "although the graph of an earlier forward is outstanding and claims some of them."},
    {"R72",
     "zero_grad() of stages 1 and 2 drops windows and local sums, and not what waits unreduced in "
     "the buckets: it joins the next window."},
    {"R73",
     "The global step is counted before the optimizer takes it: a step that the optimizer refuses "
     "(E22, E15) counts as one."},
    {"R74",
     "The end of a graph task that failed does not forget the task's entry: from then on a "
     "backward seems to be under way for ever, and no later retained graph is ended by its last "
     "backward, so what is kept for it stays until the next step."},
    {"R75",
     "A gradient marks the engine as having unreduced gradients before it is asked whether its "
     "backward is allowed: after a backward by hand that was refused (E1) the caller's next loss "
     "scale is refused, though nothing has come."},
    {"R76",
     "The capacity of the buckets of stages 1 and 2 counts the parameters of the first group "
     "alone: with several groups buckets are flushed early, and larger parameters are all-reduced "
     "one by one, which multiplies the collectives."},
    {"R77",
     "A step counts as skipped where the loss scale went down, and not where it overflowed: an "
     "overflow that the hysteresis tolerates (or one under a scale that does not move) is missing "
     "from skipped_steps."},
    {"R78",
     "full_gradients() of stage 3 does not ask whether a parameter has had a gradient in this "
     "window: it gives what the last window left there."},
    {"R79",
     "A backward that fails does not give up what earlier backwards of a retained graph have kept: "
     "those parameters stay whole in memory behind it."},
    {"R80",
     "Stages 0 to 2 take a saved optimizer step of 0 for none that was saved: an engine that has "
     "trained and loads the checkpoint of the beginning keeps its own step count, and with it a "
     "wrong bias correction."},
    {"R81",
     "The divisor that averages gradients counts all ranks of the job, tensor-parallel ones too, "
     "where only the data-parallel ones are summed: with tensor parallelism gradients are too "
     "small by its degree."},
    {"R82",
     "The look-ahead of a release stops behind max_reuse_distance and not at it, so parameters "
     "that lie exactly at the distance stay whole: with a distance of 0 the last module of the "
     "forward is kept until its backward."},
    {"R83",
     "load_checkpoint in the middle of a window drops the gradients in the optimizer alone; the "
     "engine goes on believing that the window has scaled ones, and refuses another loss scale."},
    {"R84",
     "The micro-step of a boundary is counted before the update, whatever comes of it: a step that "
     "was refused has moved the window, and the step behind its mending is no boundary any more "
     "and updates nothing."},
    {"R85",
     "What a backward of stage 3 has reduced waits for the window in the model's dtype and not in "
     "the accumulation dtype: gradients that were reduced in float32 for a float32 window are "
     "rounded to bf16 on the way."},
    {"R86",
     "Stages 1 and 2 divide the message in the communication dtype and not the gradient before it "
     "is narrowed: rounded twice, and what fits only when divided becomes an infinity."},
    {"R87",
     "A rank whose own shard has an inf or NaN returns the overflow decision at once and leaves "
     "out the all-reduce that the other ranks issue."},
    {"R88",
     "The hook that gives a contribution its accumulation-steps factor (and loss scale) is "
     "registered only for parameters that have a post-accumulate hook, so those of leaf modules "
     "lack it in a backward by hand."},
    {"R89",
     "Loading a checkpoint restores the state of the fp16 loss scaler alone; that of autocast's "
     "GradScaler stays at its start."},
    {"R90",
     "What one backward reduces waits in the model's dtype and not in grad_accum_dtype, so "
     "contributions of a parameter that comes again behind a flush are rounded."},
    {"R91",
     "override_loss_scale does not ask whether the scale is another one: setting the same one "
     "again in the middle of a window is refused."},
    {"R92",
     "engine.backward inside another backward leaves the hook policy's running flag set, so the "
     "next backward by hand gets no epilogue: its gradients are not reduced and step() refuses."},
    {"R93",
     "global_samples multiplies a step's micro-batches by the tensor-parallel ranks too, though "
     "these share their data group's micro-batch: every sample is counted once a tensor rank."},
    {"R94",
     "stage3_param_persistence_threshold is compared with a rank's slice of the parameter and not "
     "with all its elements: parameters up to ranks times as large are persistent and stay whole "
     "between steps."},
    {"R95",
     "Inside coalesce_grad_reduction a backward's epilogue leaves out the optimizer's own epilogue "
     "(taken for a part of the reduction that is put off): stage 3 does not give back what no "
     "input's gradient releases, and it stays whole behind the backward."},
    {"R96",
     "A parameter that travelled alone in its gather is installed as it lies in the gather's "
     "buffer without asking for its dtype: under torch_autocast a float32 weight is whole as a "
     "bf16 tensor."},
    {"R97",
     "Restoring a dynamic fp16 loss scaler leaves its iteration out while the last overflow comes "
     "back: the window that doubles the scale is counted from the load and not from the last "
     "overflow."},
    {"R98",
     "The capacity of stage 1 and 2's bucket adds up the elements of the first parameter group "
     "alone: with several groups the bucket is smaller than reduce_bucket_size and the trained "
     "parameters allow, and a backward reduces more often than it has to."},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_r() {
  return kFaults;
}

}  // namespace zeroproof::museum
