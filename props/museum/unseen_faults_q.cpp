#include "props/museum/unseen_fault.h"

namespace zeroproof::museum {
namespace {

constexpr UnseenFault kFaults[] = {
    {"Q01",
     "A gradient that is narrower than the master weights is unscaled and clipped in its own "
     "dtype, before it is widened, so that small values underflow or are rounded."},
    {"Q02",
     "E14 looks at stage 2 alone, so stage 3 with reduce_scatter takes prescale_gradients or "
     "a gradient_predivide_factor that it then ignores."},
    {"Q03", "A step that is skipped for overflow does not count the samples of its window."},
    {"Q04",
     "A fixed fp16 loss_scale of 1 counts as no loss scale at all: nothing asks for scale() "
     "and no step looks for overflow."},
    {"Q05", "A checkpoint that is saved under a tag of one's own does not become the latest."},
    {"Q06",
     "An engine of stage 0 lets in a backward by hand when any engine's backward is under "
     "way, so that it gets gradients that no epilogue of its own reduces."},
    {"Q07",
     "Of what a module returns, only the first output is looked at for a parameter of its "
     "own, so one that is returned beside it is given up behind the forward."},
    {"Q08",
     "A backward that fails in stage 0 leaves what it had put into .grad, which the next "
     "backward adds to."},
    {"Q09",
     "With skipped frames a forward does not forget what the forward before it read, so its "
     "graph claims those parameters as well and keeps them whole."},
    {"Q10",
     "A step that is refused because a parameter had no gradient (E15) throws away the "
     "window's gradients."},
    {"Q11",
     "a failed backward leaves the flag that gradients wait for their reduction, so a new "
     "loss scale is refused behind it though the window is empty"},
    {"Q12",
     "the dynamic loss scale is given up (E22) when halving it would reach min_loss_scale, "
     "instead of when it is there already"},
    {"Q13",
     "loading without a tensor-parallel group no longer warns, because a group of one counts "
     "as a group that was given"},
    {"Q14",
     "an odd allgather_bucket_size is refused (E11) in stages 0 and 3 too, where it is not "
     "used"},
    {"Q15",
     "coalesce_grad_reduction leaves the boundary that it forced for its flush as an "
     "override, so every later micro-batch is a boundary"},
    {"Q16",
     "a load by tag looks in the folder of the tag's own name and never in that of a newer "
     "generation, so a tag that was saved twice cannot be loaded"},
    {"Q17",
     "stage 3 without reduce_scatter divides prescaled gradients by gradient_predivide_factor "
     "instead of by the ranks, and nothing makes up for it"},
    {"Q18",
     "stage 3 with torch_autocast keeps autocast's cast cache on in its forward, so a cast "
     "made by a layer's first use outlives that use's release"},
    {"Q19",
     "unknown leaf classes are noticed only after the engine has taken the model over, so a "
     "refused initialize leaves the model's parameters empty"},
    {"Q20",
     "a named engine puts its name before the names of its parameters in getters and "
     "checkpoints, so a checkpoint fits only an engine of the same name"},
    {"Q27",
     "E15, which is for offloaded gradients' norm, is asked for in every engine of stages 1 and 2 "
     "with ignore_unused_parameters: false, offloaded or not."},
    {"Q35",
     "The end of one call's part of a graph gives back what other calls of the same module hold in "
     "their retained graphs."},
    {"Q37",
     "Reads of parameters of modules below a leaf module are not observed: whoever reads one from "
     "outside gets it partitioned."},
    {"Q38",
     "A forward of the root inside a running backward settles the backwards before it, and takes "
     "the one that is running for such a one."},
    {"Q40",
     "Where the fallback for skipped frames asks who still claims a parameter, what the running "
     "forward has read does not count."},
    {"Q41",
     "Every epilogue forgets that scale() was called, also that of an engine.backward, so a loss "
     "that was scaled before it counts as unscaled when it is differentiated by hand after it."},
    {"Q45",
     "Hooks that no prologue announced make the innermost graph task owe the epilogue, not the "
     "outermost one."},
    {"Q47",
     "A frozen parameter that a recompute uses is attributed to the oldest module whose backward "
     "is under way, the root, and not to the newest."},
    {"Q48",
     "Whether a backward failed is remembered of the last graph task that ended, so a nested one "
     "whose failure was caught leaves what it had gathered."},
    {"Q54",
     "With torch_autocast the parameters of all modules below a safe class go over the wire in the "
     "lower precision, not only those that the module owns itself."},
    {"Q60",
     "A gradient that is larger than the bucket is reduced in the model's dtype, whatever the "
     "communication dtype."},
    {"Q63",
     "Stage 3: a gradient of one communication dtype flushes the buckets of all other dtypes, so "
     "gradients whose dtypes alternate are reduced nearly one by one."},
    {"Q84",
     "The hooks on what forward returns end at the first output that has no graph: outputs behind "
     "it get none, so no prologue runs for them."},
    {"Q94", "Stage 3 asks all ranks about overflow once for each sub-group and not once a step."},
};

}  // namespace

std::span<const UnseenFault> unseen_faults_q() {
  return kFaults;
}

}  // namespace zeroproof::museum
