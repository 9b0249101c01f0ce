#include "engine/checkpoint/convert_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/checkpoint/resharded_state.h"
#include "engine/checkpoint/saved_parts.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/checkpoint/verify_checkpoint.h"

namespace zeroproof {
namespace {

Result<Manifest> head_for(const SavedParts& source, const ConvertOptions& options) {
  Manifest head = source.manifest();
  head.parts.clear();
  head.data_size = options.data_ranks;
  if (options.tensor_ranks > 0) head.tensor_size = options.tensor_ranks;
  auto rules = source.rules_for(head.tensor_size);
  if (!rules) return tl::unexpected(rules.error());
  head.rules = std::move(*rules);
  return head;
}

class Converter final : public CheckpointFolder {
 public:
  Converter(RangedFileSystem& files, const std::string& to, const SavedParts& source,
            const Manifest& head, const ConvertOptions& convert, const SaveOptions& save)
      : CheckpointFolder(files, to, save, head, part_names(head)),
        source_(source),
        convert_(convert) {}

 private:
  Result<void> write_part() override {
    if (auto whole = check_weights(); !whole) return whole;
    for (const ParallelPlace& place : places_of(head().tensor_size, head().expert_size)) {
      auto written = has_shards() ? write_shards_of(place) : write_whole_part(place);
      if (!written) return written;
    }
    return {};
  }

  bool has_shards() const { return head().data_size > 0; }

  Result<void> go_on() const {
    if (!convert_.should_stop || !convert_.should_stop()) return {};
    return fail(ErrorCode::failed, fmt::format("{}: interrupted; no file is left in it", folder_));
  }

  // A parameter without elements has no block, so that its shape is not known.
  Result<void> check_weights() const {
    std::set<std::string> weights;
    for (const auto& [parameter, key] : source_.keys())
      if (key == kWeightKey) weights.insert(parameter);
    for (const ParameterGroup& group : head().groups)
      for (const std::string& name : group.parameters)
        if (!weights.contains(name) && !has_shards())
          return fail(ErrorCode::usage,
                      fmt::format("{}: '{}' has no elements, and shards do not say its shape; load "
                                  "it and save it in the universal layout",
                                  source_.path(), name));
    return {};
  }

  Result<void> write_whole_part(const ParallelPlace& place) {
    PartManifest tensors;
    if (auto made = make_folder("zero"); !made) return made;
    for (const SavedParts::Key& key : source_.keys()) {
      if (!is_written_by(place, head().rules, key.first, key.second)) continue;
      if (auto written = write_whole(key, place, tensors); !written) return written;
    }
    for (const auto& [parameter, count] : source_.steps_of(place)) {
      if (!is_written_by(place, head().rules, parameter, std::string(kStepKey))) continue;
      if (auto written = write_step(parameter, count, place, tensors); !written) return written;
    }
    return write_part_record(part_file(place), part_text(tensors));
  }

  Result<void> write_whole(const SavedParts::Key& of, const ParallelPlace& place,
                           PartManifest& tensors) {
    const auto& [parameter, key] = of;
    auto state = source_.state(of, place);
    if (!state) return tl::unexpected(state.error());
    if (auto made = make_folder(parameter_folder(parameter)); !made) return made;
    const std::string name = key == kWeightKey ? parameter : parameter + "/" + key;
    const std::int64_t elements = numel(state->sizes());
    const auto record =
        write_pieces(tensor_file(parameter, key, place), [&](const Append& append) -> Result<void> {
          auto put = append(tensor_header_text({name, state->dtype(), state->sizes()}));
          for (std::int64_t at = 0; put && at < elements; at += kBlockElements)
            put = copy_block(*state, at, std::min(kBlockElements, elements - at), append);
          return put;
        });
    if (!record) return tl::unexpected(record.error());
    tensors.push_back({parameter, key, *record});
    return {};
  }

  Result<void> copy_block(ReshardedState& state, std::int64_t begin, std::int64_t elements,
                          const Append& append) const {
    if (auto may = go_on(); !may) return may;
    const auto bytes = state.read(begin, elements);
    if (!bytes) return tl::unexpected(bytes.error());
    return append(*bytes);
  }

  Result<void> write_step(const std::string& parameter, std::int64_t count,
                          const ParallelPlace& place, PartManifest& tensors) {
    const std::string key(kStepKey);
    const std::string bytes =
        tensor_bytes({parameter + "/" + key, {}, {static_cast<double>(count)}}, DType::float32);
    tensors.push_back({parameter, key, record_of(bytes)});
    return write(tensor_file(parameter, key, place), bytes);
  }

  // Shards of one tensor-parallel rank, for all data-parallel ones.
  Result<void> write_shards_of(const ParallelPlace& place) {
    const auto steps = steps_of(place);
    if (!steps) return tl::unexpected(steps.error());
    std::vector<ShardPart> shards(static_cast<std::size_t>(head().data_size));
    for (int rank = 0; rank < head().data_size; ++rank) {
      shards[static_cast<std::size_t>(rank)].steps = *steps;
      if (auto made = make_folder(zeroproof::folder_of(block_file(rank, place.tensor, 0))); !made)
        return made;
    }
    for (const SavedParts::Key& key : source_.keys())
      if (key.second != kStepKey)
        if (auto written = write_shards(key, place, shards); !written) return written;
    for (int rank = 0; rank < head().data_size; ++rank) {
      const std::string text = shard_part_text(shards[static_cast<std::size_t>(rank)]);
      auto written = write_part_record(shard_part_file(rank, place.tensor), text);
      if (!written) return written;
    }
    return {};
  }

  Result<std::map<std::string, std::int64_t>> steps_of(const ParallelPlace& place) const {
    std::map<std::string, std::int64_t> steps = source_.steps_of(place);
    for (const SavedParts::Key& key : source_.keys()) {
      if (key.second != kStepKey) continue;
      auto state = source_.state(key, place);
      if (!state) return tl::unexpected(state.error());
      const auto bytes = state->read(0, 1);
      if (!bytes) return tl::unexpected(bytes.error());
      const bool is_number = numel(state->sizes()) == 1;
      const double count = is_number ? element_values(*bytes, state->dtype()).front() : -1.0;
      if (count < 0.0 || count > 0x1p53 || count != std::floor(count))
        return damaged(source_.path() + "/" + parameter_folder(key.first),
                       "its step is no number of steps");
      steps[key.first] = static_cast<std::int64_t>(count);
    }
    return steps;
  }

  Result<void> write_shards(const SavedParts::Key& key, const ParallelPlace& place,
                            std::vector<ShardPart>& shards) {
    auto state = source_.state(key, place);
    if (!state) return tl::unexpected(state.error());
    const std::int64_t elements = numel(state->sizes());
    const std::int64_t share = (elements + head().data_size - 1) / head().data_size;
    for (int rank = 0; rank < head().data_size; ++rank) {
      const std::int64_t end = std::min(elements, (rank + 1) * share);
      for (std::int64_t at = rank * share; at < end; at += kBlockElements) {
        ShardBlock block{.parameter = key.first,
                         .key = key.second,
                         .sizes = state->sizes(),
                         .begin = at,
                         .elements = std::min(kBlockElements, end - at),
                         .file = {}};
        std::vector<ShardBlock>& blocks = shards[static_cast<std::size_t>(rank)].blocks;
        auto written = write_block(*state, block, block_file(rank, place.tensor, blocks.size()));
        if (!written) return written;
        blocks.push_back(std::move(block));
      }
    }
    return {};
  }

  Result<void> write_block(ReshardedState& state, ShardBlock& block, const std::string& file) {
    const std::string name = block.parameter + "/" + block.key;
    const auto record = write_pieces(file, [&](const Append& append) -> Result<void> {
      auto put = append(tensor_header_text({name, state.dtype(), {block.elements}}));
      return put ? copy_block(state, block.begin, block.elements, append) : put;
    });
    if (!record) return tl::unexpected(record.error());
    block.file = *record;
    return {};
  }

  const SavedParts& source_;
  const ConvertOptions& convert_;
};

Result<void> check_target(FileSystem& files, const std::string& to) {
  if (checkpoints_in(files, to).empty() && !files.exists(fmt::format("{}/{}", to, kManifestFile)))
    return {};
  return fail(ErrorCode::usage,
              fmt::format("{}: holds a checkpoint already; name a folder without one", to));
}

// A damaged file must not come out with the right checksum.
Result<void> check_source(RangedFileSystem& files, const std::string& path,
                          const ConvertOptions& options) {
  const auto verified = verify_checkpoint(files, path, {}, options.should_stop);
  if (!verified) return tl::unexpected(verified.error());
  if (verified->is_stopped)
    return fail(ErrorCode::failed, fmt::format("{}: interrupted; it was not written", path));
  if (verified->problems.empty()) return {};
  return damaged(verified->problems.front().path, verified->problems.front().text);
}

Result<void> check_kind(const FoundCheckpoint& source, const ConvertOptions& options) {
  const Manifest& manifest = source.manifest;
  const bool has_experts =
      manifest.expert_size > 1 ||
      std::ranges::any_of(manifest.rules, [](const auto& of) { return of.second.experts > 0; });
  if (options.data_ranks > 0 && has_experts)
    return fail(ErrorCode::usage,
                fmt::format("{}: has parts of expert-parallel ranks, which shards cannot have; "
                            "convert it to whole tensors",
                            source.path));
  if (options.tensor_ranks > 0 && options.tensor_ranks != manifest.tensor_size && has_experts)
    return fail(ErrorCode::usage,
                fmt::format("{}: has parts of expert-parallel ranks; only a load cuts it for "
                            "another number of tensor-parallel ranks",
                            source.path));
  return {};
}

}  // namespace

Result<std::string> convert_checkpoint(RangedFileSystem& files, const std::string& from,
                                       const std::string& to, const ConvertOptions& options) {
  if (auto free = check_target(files, to); !free) return tl::unexpected(free.error());
  auto found = read_manifest_in(files, from, options.tag);
  if (!found) return tl::unexpected(found.error());
  if (auto right = check_kind(*found, options); !right) return tl::unexpected(right.error());
  if (auto right = check_source(files, found->path, options); !right)
    return tl::unexpected(right.error());
  const auto source = SavedParts::open(files, std::move(*found));
  if (!source) return tl::unexpected(source.error());
  auto head = head_for(*source, options);
  if (!head) return tl::unexpected(head.error());
  const SaveOptions save;
  Converter converter(files, to, *source, *head, options, save);
  if (auto saved = converter.save(true, {}); !saved) return tl::unexpected(saved.error());
  return find_checkpoint(files, to, {});
}

}  // namespace zeroproof
