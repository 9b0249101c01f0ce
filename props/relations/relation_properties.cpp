#include "props/relations/relation_properties.h"

#include <array>

namespace zeroproof {
namespace {

constexpr Property relation(std::string_view id, std::string_view number,
                            std::string_view invariant, std::string_view statement) {
  return {id, number, invariant, statement, "metamorphic", Expectation::always, only(Scope::train)};
}

constexpr std::array kRelations = {
    relation("ranks.permuted", "MR1", "I4",
             "ranks that change places change places in every result, which else stays equal"),
    relation("buckets.other_size", "MR2", "I7", "the sizes of buckets change no result"),
    relation("fetches.other_bounds", "MR3", "I5",
             "the bounds of prefetch, reuse and persistence change no result"),
    relation("units.other_size", "MR4", "I2", "the size of sub-groups changes no result"),
    relation("reductions.other_way", "MR5", "I2",
             "overlap, contiguous gradients and the kind of reduction change no result"),
    relation("linear.other_function", "MR6", "I5",
             "the memory-efficient linear function and the plain one give equal results"),
    relation(
        "loss.scaled", "MR7", "I3",
        "losses 64 times as large give 64-fold gradients, and with the learning rate of SGD or "
        "the epsilon of Adam to match the same weights"),
    relation("frozen.added", "MR8", "I2", "a frozen parameter that is added changes no other"),
    relation("uncalled.added", "MR9", "I14", "a module that no forward calls changes no other"),
    relation("zero_output.added", "MR10", "I2",
             "a second output that is added with zero gradients changes no result"),
    relation("run.repeated", "MR11", "I4", "the same run in another schedule gives the same bits"),
    relation("batch.split", "MR12", "I14", "one batch gives the gradients of its micro-batches"),
    relation("losses.summed", "MR13", "I14",
             "the backward of a sum of losses gives the gradients of their backwards"),
    relation("checkpoint.round_trip", "MR14", "I10", "a save and a load of it change no result"),
    relation("world.doubled", "MR15", "I4",
             "twice the ranks on the same data, each part twice, give the same results"),
    relation("stage.other", "MR16", "I2", "every stage gives the same results"),
    relation("no_sync.removed", "MR17", "I14",
             "micro-batches without synchronisation give the results of synchronised ones"),
    relation("evaluation.between", "MR18", "I9",
             "an evaluation between two micro-batches changes no result"),
    relation("zero_grad.after_step", "MR19", "I14", "zero_grad() after a step changes no result"),
    relation("groups.split", "MR20", "I2",
             "a parameter group that is split in equal ones gives the same results"),
    relation("modules.reordered", "MR21", "I2",
             "the order in which parameters are registered changes no gradient"),
};

}  // namespace

std::span<const Property> relation_properties() {
  return kRelations;
}

}  // namespace zeroproof
