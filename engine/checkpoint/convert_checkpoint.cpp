#include "engine/checkpoint/convert_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/state_reader.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/checkpoint/verify_checkpoint.h"

namespace zeroproof {
namespace {

Manifest head_for(const FoundCheckpoint& source, const ConvertOptions& options) {
  Manifest head = source.manifest;
  head.parts.clear();
  head.data_size = options.data_ranks;
  return head;
}

std::vector<std::string> parts_for(const FoundCheckpoint& source, const ConvertOptions& options) {
  return part_names(head_for(source, options));
}

class Converter final : public CheckpointFolder {
 public:
  Converter(RangedFileSystem& files, const std::string& to, const FoundCheckpoint& source,
            const ConvertOptions& convert, const SaveOptions& save)
      : CheckpointFolder(files, to, save, head_for(source, convert), parts_for(source, convert)),
        ranged_(files),
        source_(source),
        convert_(convert) {}

 private:
  Result<void> write_part() override {
    auto parts = read_stored_parts(files_, source_);
    if (!parts) return tl::unexpected(parts.error());
    parts_ = std::move(*parts);
    if (auto whole = check_weights(); !whole) return whole;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      auto written = convert_.data_ranks == 0 ? write_whole_part(part) : write_shards_of(part);
      if (!written) return written;
    }
    return {};
  }

  Result<void> go_on() const {
    if (!convert_.should_stop || !convert_.should_stop()) return {};
    return fail(ErrorCode::failed, fmt::format("{}: interrupted; no file is left in it", folder_));
  }

  // A parameter without elements has no block, so that its shape is not known.
  Result<void> check_weights() const {
    std::set<std::string> weights;
    for (const StoredState& state : parts_.front().states)
      if (state.key == kWeightKey) weights.insert(state.parameter);
    for (const ParameterGroup& group : source_.manifest.groups)
      for (const std::string& name : group.parameters)
        if (!weights.contains(name) && convert_.data_ranks == 0)
          return fail(ErrorCode::usage,
                      fmt::format("{}: '{}' has no elements, and shards do not say its shape; load "
                                  "it and save it in the universal layout",
                                  source_.path, name));
    return {};
  }

  ParallelPlace place_of(std::size_t part) const {
    const Manifest& manifest = source_.manifest;
    return places_of(manifest.tensor_size, manifest.expert_size)[part];
  }

  Result<void> write_whole_part(std::size_t part) {
    const ParallelPlace place = place_of(part);
    PartManifest tensors;
    if (auto made = make_folder("zero"); !made) return made;
    for (const StoredState& state : parts_[part].states) {
      if (!is_written_by(place, source_.manifest.rules, state.parameter, state.key)) continue;
      if (auto written = write_whole(state, place, tensors); !written) return written;
    }
    for (const auto& [parameter, count] : parts_[part].steps) {
      if (!is_written_by(place, source_.manifest.rules, parameter, std::string(kStepKey))) continue;
      if (auto written = write_step(parameter, count, place, tensors); !written) return written;
    }
    return write_part_record(part_file(place), part_text(tensors));
  }

  Result<void> write_whole(const StoredState& state, const ParallelPlace& place,
                           PartManifest& tensors) {
    const auto reader = StateReader::open(ranged_, source_.path, state);
    if (!reader) return tl::unexpected(reader.error());
    if (auto made = make_folder(parameter_folder(state.parameter)); !made) return made;
    const std::string name =
        state.key == kWeightKey ? state.parameter : state.parameter + "/" + state.key;
    const std::int64_t elements = numel(reader->sizes());
    const auto record = write_pieces(
        tensor_file(state.parameter, state.key, place), [&](const Append& append) -> Result<void> {
          auto put = append(tensor_header_text({name, reader->dtype(), reader->sizes()}));
          for (std::int64_t at = 0; put && at < elements; at += kBlockElements)
            put = copy_block(*reader, at, std::min(kBlockElements, elements - at), append);
          return put;
        });
    if (!record) return tl::unexpected(record.error());
    tensors.push_back({state.parameter, state.key, *record});
    return {};
  }

  Result<void> copy_block(const StateReader& reader, std::int64_t begin, std::int64_t elements,
                          const Append& append) const {
    if (auto may = go_on(); !may) return may;
    const auto bytes = reader.read(begin, elements);
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
  Result<void> write_shards_of(std::size_t part) {
    const ParallelRank tensor = place_of(part).tensor;
    const std::vector<StoredState> states = states_of(part);
    const auto steps = steps_of(part, states);
    if (!steps) return tl::unexpected(steps.error());
    std::vector<ShardPart> shards(static_cast<std::size_t>(convert_.data_ranks));
    for (int rank = 0; rank < convert_.data_ranks; ++rank) {
      shards[static_cast<std::size_t>(rank)].steps = *steps;
      if (auto made = make_folder(zeroproof::folder_of(block_file(rank, tensor, 0))); !made)
        return made;
    }
    for (const StoredState& state : states)
      if (state.key != kStepKey)
        if (auto written = write_shards(state, tensor, shards); !written) return written;
    for (int rank = 0; rank < convert_.data_ranks; ++rank) {
      const std::string text = shard_part_text(shards[static_cast<std::size_t>(rank)]);
      auto written = write_part_record(shard_part_file(rank, tensor), text);
      if (!written) return written;
    }
    return {};
  }

  // Its own, and those that the first rank has written for all.
  std::vector<StoredState> states_of(std::size_t part) const {
    std::vector<StoredState> states = parts_[part].states;
    std::set<std::pair<std::string, std::string>> own;
    for (const StoredState& state : states) own.emplace(state.parameter, state.key);
    for (const StoredState& state : parts_.front().states)
      if (!own.contains({state.parameter, state.key})) states.push_back(state);
    return states;
  }

  Result<std::map<std::string, std::int64_t>> steps_of(
      std::size_t part, const std::vector<StoredState>& states) const {
    std::map<std::string, std::int64_t> steps = parts_[part].steps;
    for (const StoredState& state : states) {
      if (state.key != kStepKey) continue;
      const std::string path = source_.path + "/" + state.pieces.front().file;
      const auto bytes = read_shard_file(files_, path, state.pieces.front().record);
      if (!bytes) return tl::unexpected(bytes.error());
      const auto tensor = parse_tensor(*bytes, path);
      if (!tensor) return tl::unexpected(tensor.error());
      const double count = tensor->values.size() == 1 ? tensor->values.front() : -1.0;
      if (count < 0.0 || count > 0x1p53 || count != std::floor(count))
        return damaged(path, "its step is no number of steps");
      steps[state.parameter] = static_cast<std::int64_t>(count);
    }
    return steps;
  }

  Result<void> write_shards(const StoredState& state, const ParallelRank& tensor,
                            std::vector<ShardPart>& shards) {
    const auto reader = StateReader::open(ranged_, source_.path, state);
    if (!reader) return tl::unexpected(reader.error());
    const std::int64_t elements = numel(reader->sizes());
    const std::int64_t share = (elements + convert_.data_ranks - 1) / convert_.data_ranks;
    for (int rank = 0; rank < convert_.data_ranks; ++rank) {
      const std::int64_t end = std::min(elements, (rank + 1) * share);
      for (std::int64_t at = rank * share; at < end; at += kBlockElements) {
        ShardBlock block{.parameter = state.parameter,
                         .key = state.key,
                         .sizes = reader->sizes(),
                         .begin = at,
                         .elements = std::min(kBlockElements, end - at),
                         .file = {}};
        std::vector<ShardBlock>& blocks = shards[static_cast<std::size_t>(rank)].blocks;
        auto written = write_block(*reader, block, block_file(rank, tensor, blocks.size()));
        if (!written) return written;
        blocks.push_back(std::move(block));
      }
    }
    return {};
  }

  Result<void> write_block(const StateReader& reader, ShardBlock& block, const std::string& file) {
    const std::string name = block.parameter + "/" + block.key;
    const auto record = write_pieces(file, [&](const Append& append) -> Result<void> {
      auto put = append(tensor_header_text({name, reader.dtype(), {block.elements}}));
      return put ? copy_block(reader, block.begin, block.elements, append) : put;
    });
    if (!record) return tl::unexpected(record.error());
    block.file = *record;
    return {};
  }

  RangedFileSystem& ranged_;
  const FoundCheckpoint& source_;
  const ConvertOptions& convert_;
  std::vector<StoredPart> parts_;
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
  return {};
}

}  // namespace

Result<std::string> convert_checkpoint(RangedFileSystem& files, const std::string& from,
                                       const std::string& to, const ConvertOptions& options) {
  if (auto free = check_target(files, to); !free) return tl::unexpected(free.error());
  const auto source = read_manifest_in(files, from, options.tag);
  if (!source) return tl::unexpected(source.error());
  if (auto right = check_kind(*source, options); !right) return tl::unexpected(right.error());
  if (auto right = check_source(files, source->path, options); !right)
    return tl::unexpected(right.error());
  const SaveOptions save;
  if (auto saved = Converter(files, to, *source, options, save).save(true, {}); !saved)
    return tl::unexpected(saved.error());
  return find_checkpoint(files, to, {});
}

}  // namespace zeroproof
