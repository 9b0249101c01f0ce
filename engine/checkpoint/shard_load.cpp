#include "engine/checkpoint/shard_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/stored_files.h"

namespace zeroproof {
namespace {

Result<FoundCheckpoint> find_shards(FileSystem& files, const std::string& folder,
                                    const std::string& tag) {
  const auto path = find_checkpoint(files, folder, tag);
  if (!path) return tl::unexpected(path.error());
  auto manifest = read_manifest_at(files, *path);
  if (!manifest) return tl::unexpected(manifest.error());
  if (manifest->data_size == 0)
    return fail(ErrorCode::usage,
                fmt::format("{}/{}: has whole tensors and no shards of ranks: load it with the "
                            "universal layout",
                            *path, kManifestFile));
  return FoundCheckpoint{*path, std::move(*manifest)};
}

// One state as ranks saved it. Holds the last block of each rank, so that elements that are taken
// in order are read once.
class SavedElements {
 public:
  SavedElements(FileSystem& files, const std::string& path, const ShardIndex::Key& key,
                const std::vector<ShardIndex>& saved)
      : files_(files), path_(path), key_(key), saved_(saved) {}

  Result<void> copy(const PartPiece& piece, std::vector<double>::iterator to) {
    const std::int64_t end = piece.begin + piece.elements;
    for (std::int64_t at = piece.begin; at < end;) {
      const auto block = block_with(piece.part, at);
      if (!block) return tl::unexpected(block.error());
      const std::int64_t from = at - (*block)->begin;
      const std::int64_t count = std::min(end - at, std::ssize((*block)->values) - from);
      to = std::copy_n((*block)->values.begin() + from, count, to);
      at += count;
    }
    return {};
  }

 private:
  struct Block {
    std::int64_t begin = 0;
    std::vector<double> values;
  };

  Result<const Block*> block_with(int part, std::int64_t element) {
    Block& held = held_[part];
    if (held.begin <= element && element < held.begin + std::ssize(held.values)) return &held;
    held = {};  // before the next one is there
    const ShardIndex::Stored& stored =
        *saved_[static_cast<std::size_t>(part)].blocks_of(key_, element, 1).front();
    auto values = read_block(files_, path_, stored);
    if (!values) return tl::unexpected(values.error());
    held = {.begin = stored.block.begin, .values = std::move(*values)};
    return &held;
  }

  FileSystem& files_;
  const std::string& path_;
  const ShardIndex::Key& key_;
  const std::vector<ShardIndex>& saved_;
  std::map<int, Block> held_;
};

// What a load takes at a time of the blocks that it holds.
constexpr std::int64_t kTakenElements = kBlockElements / 8;

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// By part, what lies between the first and the last element that a shard takes of it.
std::map<int, Interval> needs_of(const StateShard& shard, const AxisPlan& plan,
                                 const std::vector<Shape>& sizes) {
  std::map<int, Interval> needs;
  each_piece(plan, sizes, shard.begin, shard.values.elements, [&](const PartPiece& piece) {
    if (piece.part == AxisRun::kZeros) return true;
    const std::int64_t end = piece.begin + piece.elements;
    const auto [at, is_new] = needs.try_emplace(piece.part, Interval{piece.begin, end});
    at->second = {std::min(at->second.begin, piece.begin), std::max(at->second.end, end)};
    return true;
  });
  return needs;
}

}  // namespace

Result<ShardLoad> ShardLoad::open(FileSystem& files, const std::string& folder,
                                  const std::string& tag, const ParallelRank& tensor) {
  const auto found = find_shards(files, folder, tag);
  if (!found) return tl::unexpected(found.error());
  const Manifest& manifest = found->manifest;
  ShardLoad load;
  load.files_ = &files;
  load.path_ = found->path;
  load.head_ = {.groups = manifest.groups,
                .partition_rules = manifest.rules,
                .loss_scaler = manifest.loss_scaler,
                .counters = manifest.counters,
                .scheduler = manifest.scheduler};
  load.tensor_ = tensor;
  load.is_of_as_many_ = manifest.tensor_size == tensor.size;
  for (int rank = 0; rank < manifest.tensor_size; ++rank) {
    if (load.is_of_as_many_ && rank != tensor.rank) continue;
    auto index = read_shard_index(files, *found, {rank, manifest.tensor_size});
    if (!index) return tl::unexpected(index.error());
    load.saved_.push_back(std::move(*index));
  }
  return load;
}

Result<void> ShardLoad::check_names(const std::vector<StateShard>& shards) const {
  SavedNames saved;
  LoadTargets targets;
  const auto is_weight = [](const std::string& key) { return key == kWeightKey; };
  for (const auto& [key, blocks] : saved_.front().states())
    (is_weight(key.second) ? saved.parameters : saved.optimizer_state)
        .insert(is_weight(key.second) ? key.first : key.first + "/" + key.second);
  for (const StateShard& shard : shards) {
    if (numel(shard.sizes) == 0) continue;  // it has no block
    (is_weight(shard.key) ? targets.parameters : targets.optimizer_state)
        .push_back({is_weight(shard.key) ? shard.parameter : shard.parameter + "/" + shard.key,
                    shard.sizes});
  }
  return zeroproof::check_names(saved, targets, path_);
}

Result<ShardLoad::Origin> ShardLoad::origin_of(const StateShard& shard) const {
  Origin origin{.key = {shard.parameter, shard.key}, .sizes = {}, .plan = {}};
  for (const ShardIndex& saved : saved_) {
    const auto at = saved.states().find(origin.key);
    if (at == saved.states().end())
      return damaged(
          path_, fmt::format("a tensor-parallel rank lacks '{}/{}'", shard.parameter, shard.key));
    origin.sizes.push_back(at->second.front().block.sizes);
  }
  if (auto planned = plan(origin, shard.sizes); !planned)
    return fail(planned.error().code,
                fmt::format("{}: '{}/{}' does not fit: {}", path_, shard.parameter, shard.key,
                            planned.error().text));
  return origin;
}

Result<void> ShardLoad::plan(Origin& origin, const Shape& wanted) const {
  // As many ranks take what each of them saved, whatever the rule.
  const PartitionRule rule =
      is_of_as_many_ ? PartitionRule{.kind = PartitionKind::replicated}
                     : rule_of(head_.partition_rules, origin.key.first, origin.key.second);
  auto planned = plan_reshard(origin.sizes, rule, tensor_, wanted);
  if (!planned) return tl::unexpected(planned.error());
  origin.plan = std::move(planned->plan);
  return {};
}

Result<void> ShardLoad::check(const std::vector<StateShard>& shards,
                              const std::vector<std::vector<std::string>>& groups) const {
  if (auto right = check_names(shards); !right) return right;
  if (auto right = check_groups(head_.groups.size(), groups.size(), path_); !right) return right;
  for (const StateShard& shard : shards) {
    if (numel(shard.sizes) == 0) continue;
    const auto origin = origin_of(shard);
    if (!origin) return tl::unexpected(origin.error());
    if (auto right = check_blocks(shard, *origin); !right) return right;
  }
  return {};
}

Result<void> ShardLoad::check_blocks(const StateShard& shard, const Origin& origin) const {
  for (const auto& [part, needed] : needs_of(shard, origin.plan, origin.sizes)) {
    const ShardIndex& saved = saved_[static_cast<std::size_t>(part)];
    for (const ShardIndex::Stored* stored :
         saved.blocks_of(origin.key, needed.begin, needed.end - needed.begin))
      if (auto block = read_block(*files_, path_, *stored); !block)
        return tl::unexpected(block.error());
  }
  return {};
}

Result<void> ShardLoad::apply(const std::vector<StateShard>& shards,
                              const ShardValues& values) const {
  for (const StateShard& shard : shards) {
    if (shard.values.elements == 0) continue;
    const auto origin = origin_of(shard);
    if (!origin) return tl::unexpected(origin.error());
    if (auto loaded = load(shard, *origin, values); !loaded) return loaded;
  }
  return {};
}

Result<void> ShardLoad::load(const StateShard& shard, const Origin& origin,
                             const ShardValues& values) const {
  SavedElements saved(*files_, path_, origin.key, saved_);
  for (std::int64_t at = 0; at < shard.values.elements; at += kTakenElements) {
    const std::int64_t elements = std::min(kTakenElements, shard.values.elements - at);
    std::vector<double> taken(static_cast<std::size_t>(elements), 0.0);
    auto next = taken.begin();
    Result<void> copied;
    each_piece(origin.plan, origin.sizes, shard.begin + at, elements, [&](const PartPiece& piece) {
      if (piece.part != AxisRun::kZeros) copied = saved.copy(piece, next);
      next += piece.elements;
      return copied.has_value();
    });
    if (!copied) return copied;
    values.write(shard.values.part(at, elements), taken);
  }
  return {};
}

}  // namespace zeroproof
