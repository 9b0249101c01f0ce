#include "engine/checkpoint/stored_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"

namespace zeroproof {
namespace {

Result<std::string> read_part_text(FileSystem& files, const FoundCheckpoint& checkpoint,
                                   std::size_t part) {
  const std::string path = checkpoint.path + "/" + part_names(checkpoint.manifest)[part];
  return read_shard_file(files, path, checkpoint.manifest.parts[part]);
}

Result<StoredPart> read_whole_part(FileSystem& files, const FoundCheckpoint& checkpoint,
                                   std::size_t part) {
  const auto text = read_part_text(files, checkpoint, part);
  if (!text) return tl::unexpected(text.error());
  const Manifest& manifest = checkpoint.manifest;
  const ParallelPlace place = places_of(manifest.tensor_size, manifest.expert_size)[part];
  const auto tensors = parse_part(*text, checkpoint.path + "/" + part_file(place));
  if (!tensors) return tl::unexpected(tensors.error());
  StoredPart stored;
  for (const StoredTensor& of : *tensors)
    stored.states.push_back(
        {.parameter = of.parameter,
         .key = of.key,
         .place = place,
         .pieces = {{.file = tensor_file(of.parameter, of.key, place), .record = of.file}}});
  return stored;
}

// The order of the parameter groups, then that of names.
void put_in_order(const Manifest& manifest, std::vector<StoredState>& states) {
  std::map<std::string, std::size_t> places;
  for (const ParameterGroup& group : manifest.groups)
    for (const std::string& name : group.parameters) places.emplace(name, places.size());
  const auto rank = [&](const StoredState& of) {
    const auto at = places.find(of.parameter);
    const std::size_t place = at == places.end() ? places.size() : at->second;
    return std::tuple(of.key != kWeightKey, place, of.parameter, of.key);
  };
  std::ranges::stable_sort(
      states, [&](const StoredState& a, const StoredState& b) { return rank(a) < rank(b); });
}

// What one tensor-parallel rank has in the blocks of all data-parallel ranks.
Result<StoredPart> read_shard_part(FileSystem& files, const FoundCheckpoint& checkpoint,
                                   const ParallelRank& rank) {
  const auto index = read_shard_index(files, checkpoint, rank);
  if (!index) return tl::unexpected(index.error());
  StoredPart stored{.states = {}, .steps = index->steps()};
  for (const auto& [key, blocks] : index->states()) {
    StoredState state{.parameter = key.first,
                      .key = key.second,
                      .place = {.tensor = rank, .expert = {}},
                      .sizes = blocks.front().block.sizes,
                      .pieces = {}};
    for (const ShardIndex::Stored& of : blocks)
      state.pieces.push_back({of.file, of.block.file, of.block.elements});
    stored.states.push_back(std::move(state));
  }
  put_in_order(checkpoint.manifest, stored.states);
  return stored;
}

}  // namespace

Result<std::string> checkpoint_path(FileSystem& files, const std::string& folder,
                                    const std::string& tag) {
  const bool is_checkpoint = files.exists(fmt::format("{}/{}", folder, kManifestFile));
  if (tag.empty() && is_checkpoint) return folder;
  return find_checkpoint(files, folder, tag);
}

Result<FoundCheckpoint> read_manifest_in(FileSystem& files, const std::string& folder,
                                         const std::string& tag) {
  auto path = checkpoint_path(files, folder, tag);
  if (!path) return tl::unexpected(path.error());
  auto manifest = read_manifest_at(files, *path);
  if (!manifest) return tl::unexpected(manifest.error());
  return FoundCheckpoint{std::move(*path), std::move(*manifest)};
}

Result<Manifest> read_manifest_at(FileSystem& files, const std::string& path) {
  const std::string at = fmt::format("{}/{}", path, kManifestFile);
  const auto text = files.read(at, kManifestBytesMax);
  if (!text) return damaged(at, text.error().reason);
  return parse_manifest(*text, at);
}

std::vector<std::string> part_names(const Manifest& manifest) {
  return manifest.data_size > 0 ? shard_part_files(manifest.tensor_size, manifest.data_size)
                                : part_files(manifest.tensor_size, manifest.expert_size);
}

Result<ShardIndex> read_shard_index(FileSystem& files, const FoundCheckpoint& checkpoint,
                                    const ParallelRank& tensor) {
  const int ranks = checkpoint.manifest.data_size;
  const std::vector<std::string> names = part_names(checkpoint.manifest);
  std::vector<ShardPart> parts;
  for (int data = 0; data < ranks; ++data) {
    const int index = tensor.rank * ranks + data;
    const auto at = static_cast<std::size_t>(index);
    const auto text = read_part_text(files, checkpoint, at);
    if (!text) return tl::unexpected(text.error());
    auto part = parse_shard_part(*text, checkpoint.path + "/" + names[at]);
    if (!part) return tl::unexpected(part.error());
    parts.push_back(std::move(*part));
  }
  return ShardIndex::make(parts, tensor, checkpoint.path);
}

Result<std::vector<StoredPart>> read_stored_parts(FileSystem& files,
                                                  const FoundCheckpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  const bool has_shards = manifest.data_size > 0;
  const std::size_t places =
      has_shards ? static_cast<std::size_t>(manifest.tensor_size) : manifest.parts.size();
  std::vector<StoredPart> parts;
  for (std::size_t place = 0; place < places; ++place) {
    auto part = has_shards ? read_shard_part(files, checkpoint,
                                             {static_cast<int>(place), manifest.tensor_size})
                           : read_whole_part(files, checkpoint, place);
    if (!part) return tl::unexpected(part.error());
    parts.push_back(std::move(*part));
  }
  return parts;
}

}  // namespace zeroproof
