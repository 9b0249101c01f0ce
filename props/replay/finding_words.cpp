#include "props/replay/finding_words.h"

#include <algorithm>
#include <array>

namespace zeroproof {
namespace {

constexpr std::string_view kManual =
    "whether loss.backward() is called twice for one forward, or for an older one: run one forward "
    "for "
    "each backward, or use engine.backward";
constexpr std::string_view kAborted =
    "the exception that left a backward: rebuild the engine after it; no release of DeepSpeed up "
    "to 0.19.8 recovers, and zero_grad alone does not help";
constexpr std::string_view kReentrantWords =
    "reentrant checkpoints under loss.backward(): use_reentrant=False, engine.backward(loss), or "
    "DeepSpeed 0.18.5 and later";
constexpr std::string_view kSeveral =
    "several backwards before one step: sum the losses first, raise gradient_accumulation_steps, "
    "or "
    "wrap them in coalesce_grad_reduction()";
constexpr std::string_view kResidency =
    "where the parameter was partitioned last, and which module still needed it: ZeRO-3 module "
    "hooks, "
    "retained graphs, modules called past the engine";

constexpr std::array<FindingWords, 26> kWords = {{
    {"P1", "epilogue.count", kManual},
    {"P2", "epilogue.too_early", kReentrantWords},
    {"P3", "epilogue.in_forward", kAborted},
    {"P4", "backward.never_left", kAborted},
    {"P6", "count.every_hook",
     "DeepSpeed before 0.18.7 counts the reachable parameters in every hook"},
    {"P7", "gradients.not_reduced", kManual},
    {"P8", "callback.flag_stale", kManual},
    {"P11", "backward.dirty_after_abort", kAborted},
    {"P12", "backward.never_left", kAborted},
    {"P26", "gradients.differ_from_stage0", "the same program at stage 0, step by step"},
    {"P27", "gradients.differ_from_stage0",
     "parameters used only in some micro-batches of a window"},
    {"P28", "gradients.overwritten", kSeveral},
    {"P29", "gradients.overwritten", kSeveral},
    {"P30", "gradients.overwritten", kSeveral},
    {"P31", "gradients.stale", "parameters that get no gradient in a whole window"},
    {"P32", "gradients.stale", "parameters that are used only in some micro-batches"},
    {"P41", "gradients.overwritten", kSeveral},
    {"P42", "bucket.parameter_twice",
     "weights shared by two reentrant checkpoints, or a module run twice: use_reentrant=False"},
    {"P45", "collective.sequence_differs", "the first collective in which the ranks part"},
    {"P57", "decision.differs",
     "which rank overflowed: the decision must be reduced over all ranks"},
    {"P62", "parameter.not_resident", kResidency},
    {"P63", "parameter.not_released", kResidency},
    {"P65", "parameter.released_in_use", kResidency},
    {"P67", "collective.gather_order_differs", "the first gather in which the ranks part"},
    {"P76", "parameter.not_resident", kResidency},
    {"P79", "transform.unsupported",
     "ZeRO-3 under torch.func: run the transform on engine.module with gathered parameters"},
}};

}  // namespace

const FindingWords* finding_words(const Property& property) {
  const auto at = std::find_if(kWords.begin(), kWords.end(), [&](const FindingWords& words) {
    return words.number == property.number;
  });
  return at == kWords.end() ? nullptr : &*at;
}

}  // namespace zeroproof
