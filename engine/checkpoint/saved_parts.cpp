#include "engine/checkpoint/saved_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/state_check.h"

namespace zeroproof {

Result<SavedParts> SavedParts::open(RangedFileSystem& files, FoundCheckpoint checkpoint) {
  SavedParts saved;
  saved.files_ = &files;
  saved.checkpoint_ = std::move(checkpoint);
  auto parts = read_stored_parts(files, saved.checkpoint_);
  if (!parts) return tl::unexpected(parts.error());
  saved.parts_ = std::move(*parts);
  for (const StoredPart& part : saved.parts_) {
    auto& positions = saved.positions_.emplace_back();
    for (std::size_t at = 0; at < part.states.size(); ++at)
      positions.emplace(Key{part.states[at].parameter, part.states[at].key}, at);
  }
  return saved;
}

// Cutting a weight gives its rule.
Result<std::map<std::string, PartitionRule>> SavedParts::rules_for(int tensor_size) const {
  std::map<std::string, PartitionRule> rules = manifest().rules;
  if (is_of_as_many(tensor_size)) return rules;
  for (const StoredState& weight : parts_.front().states) {
    if (weight.key != kWeightKey) continue;
    const auto rule = rules.find(weight.parameter);
    if (rule == rules.end() || rule->second.kind == PartitionKind::inferred)
      return fail(ErrorCode::usage,
                  fmt::format("{}: no partition rule says how '{}' is shared by tensor-parallel "
                              "ranks; save it with one, or as 'replicated'",
                              path(), weight.parameter));
    const auto part = state({weight.parameter, weight.key}, {.tensor = {0, tensor_size}});
    if (!part) return tl::unexpected(part.error());
    rule->second = part->rule();
  }
  return rules;
}

std::vector<SavedParts::Key> SavedParts::keys() const {
  std::vector<Key> keys;
  for (const StoredState& state : parts_.front().states)
    keys.emplace_back(state.parameter, state.key);
  return keys;
}

Result<ReshardedState> SavedParts::state(const Key& key, const ParallelPlace& place) const {
  const bool is_as_saved = is_of_as_many(place.tensor.size);
  // As many ranks have what each of them saved, whatever the rule.
  const PartitionRule rule = is_as_saved ? PartitionRule{.kind = PartitionKind::replicated}
                                         : rule_of(manifest().rules, key.first, key.second);
  if (rule.kind == PartitionKind::replicated) {
    const StoredState* own = is_as_saved ? find(index_of(place), key) : nullptr;
    // Where all ranks have the same, the first one saved it.
    const StoredState* saved = own == nullptr ? find(0, key) : own;
    return ReshardedState::open(*files_, path(), {saved}, rule, place.tensor);
  }
  std::vector<const StoredState*> saved;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    saved.push_back(find(part, key));
    if (saved.back() == nullptr)
      return damaged(path(),
                     fmt::format("a tensor-parallel rank lacks '{}/{}'", key.first, key.second));
  }
  return ReshardedState::open(*files_, path(), saved, rule, place.tensor);
}

const std::map<std::string, std::int64_t>& SavedParts::steps_of(const ParallelPlace& place) const {
  return parts_[is_of_as_many(place.tensor.size) ? index_of(place) : 0].steps;
}

std::size_t SavedParts::index_of(const ParallelPlace& place) const {
  const int index = place.expert.rank * place.tensor.size + place.tensor.rank;
  return static_cast<std::size_t>(index);
}

const StoredState* SavedParts::find(std::size_t part, const Key& key) const {
  const auto at = positions_[part].find(key);
  return at == positions_[part].end() ? nullptr : &parts_[part].states[at->second];
}

}  // namespace zeroproof
