#include "props/relations/relation.h"

#include <algorithm>
#include <array>

#include "model/check.h"
#include "props/relations/relation_table.h"
#include "props/run_properties.h"

namespace zeroproof::relations {
namespace {

using program::Observed;

// What a user reads in the middle of a window may say how it is reduced.
constexpr std::uint32_t kReads = kinds(Observed::value);
constexpr std::uint32_t kCounts = kinds(Observed::counters);
// Sums of losses are seen as other values.
constexpr std::uint32_t kLosses = kinds(Observed::loss);
constexpr std::uint32_t kFiles = kinds(Observed::saved);
constexpr std::uint32_t kUpdates = kinds(Observed::update, Observed::value, Observed::saved);
constexpr int kScaled = 6;

constexpr std::array kRelations = {
    Relation{"P33", with_other_management, kReads | kCounts | kFiles},
    Relation{"P34", without_coalescing, kReads},
    Relation{"P35", with_other_offload},
    Relation{"P36", with_other_checkpoints},
    Relation{"P37", without_tiles, kReads},
    // Rank 0 alone looks at what a checkpoint holds.
    Relation{"MR1", with_permuted_ranks, kFiles},
    Relation{"MR2", with_other_buckets},
    Relation{"MR3", with_other_fetches},
    Relation{"MR4", with_other_units},
    Relation{"MR5", with_other_reductions},
    Relation{"MR6", with_other_linear},
    Relation{"MR7", with_scaled_loss, kReads | kFiles, kScaled},
    Relation{"MR8", with_frozen_parameter, kLosses | kReads},
    Relation{"MR9", with_uncalled_module, kReads},
    Relation{"MR10", with_zero_output},
    Relation{.number = "MR11", .other = once_more, .is_bitwise = true},
    Relation{"MR12", with_one_batch, kLosses | kReads | kCounts | kFiles},
    // Unmanaged accumulation counts samples by backwards.
    Relation{"MR13", with_summed_losses, kLosses | kCounts},
    Relation{"MR14", with_round_trip},
    Relation{"MR15", on_twice_the_ranks, kCounts | kFiles},
    Relation{"MR16", in_other_stage, kReads | kFiles},
    Relation{"MR17", without_no_sync, kReads},
    Relation{"MR18", with_evaluation},
    Relation{"MR19", with_zero_grad},
    Relation{"MR20", with_other_groups},
    Relation{"MR21", with_reordered_modules, kLosses | kUpdates},
};

}  // namespace

const Property& Relation::property() const {
  const Property* const found = find_any_property(number);
  ZP_CHECK(found, "a relation has its property");
  return *found;
}

std::span<const Relation> all_relations() {
  return kRelations;
}

const Relation* find_relation(std::string_view number_or_id) {
  const auto at = std::ranges::find_if(kRelations, [&](const Relation& it) {
    return it.number == number_or_id || it.property().id == number_or_id;
  });
  return at == kRelations.end() ? nullptr : &*at;
}

}  // namespace zeroproof::relations
