#pragma once

#include <optional>

#include "props/relations/relation.h"

namespace zeroproof::relations {

// The other programs of all_relations(), by what they change.

// Subject: the configuration.
std::optional<Other> with_other_buckets(const program::Program& program);
std::optional<Other> with_other_fetches(const program::Program& program);
std::optional<Other> with_other_units(const program::Program& program);
std::optional<Other> with_other_reductions(const program::Program& program);
std::optional<Other> with_other_linear(const program::Program& program);
std::optional<Other> with_other_offload(const program::Program& program);
std::optional<Other> with_other_management(const program::Program& program);
std::optional<Other> in_other_stage(const program::Program& program);
std::optional<Other> with_other_groups(const program::Program& program);

// Subject: models.
std::optional<Other> with_other_checkpoints(const program::Program& program);
std::optional<Other> without_tiles(const program::Program& program);
std::optional<Other> with_frozen_parameter(const program::Program& program);
std::optional<Other> with_uncalled_module(const program::Program& program);
std::optional<Other> with_reordered_modules(const program::Program& program);

// Subject: statements.
std::optional<Other> without_coalescing(const program::Program& program);
std::optional<Other> without_no_sync(const program::Program& program);
std::optional<Other> with_zero_output(const program::Program& program);
std::optional<Other> with_one_batch(const program::Program& program);
std::optional<Other> with_summed_losses(const program::Program& program);
std::optional<Other> with_round_trip(const program::Program& program);
std::optional<Other> with_evaluation(const program::Program& program);
std::optional<Other> with_zero_grad(const program::Program& program);

// Subject: the run.
std::optional<Other> with_permuted_ranks(const program::Program& program);
std::optional<Other> with_scaled_loss(const program::Program& program);
std::optional<Other> once_more(const program::Program& program);
std::optional<Other> on_twice_the_ranks(const program::Program& program);

}  // namespace zeroproof::relations
