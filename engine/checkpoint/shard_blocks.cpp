#include "engine/checkpoint/shard_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/axis_plan.h"
#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/manifest_json.h"
#include "engine/checkpoint/tensor_file.h"

namespace zeroproof {
namespace {

using nlohmann::json;

constexpr std::string_view kShardPartSchema = "zeroproof.checkpoint_shards_part/1";

std::string place_of(int data_rank, const ParallelRank& tensor) {
  return fmt::format("shards.tp{}.dp{}", tensor.rank, data_rank);
}

ShardBlock read_block_record(const json& value) {
  ShardBlock block{.parameter = read_name(value.at("parameter")),
                   .key = read_name(value.at("key")),
                   .sizes = read_shape(value.at("shape")),
                   .begin = read_number(value.at("begin")),
                   .elements = read_number(value.at("elements")),
                   .file = read_file_record(value)};
  const auto whole = elements_within(block.sizes, kLargestNumber);
  if (!whole || block.elements < 1 || block.elements > kBlockElements ||
      block.begin + block.elements > *whole)
    throw Malformed(value.dump() + " as a block");
  return block;
}

ShardPart read_part(const json& value) {
  ShardPart part;
  for (const json& block : value.at("blocks")) part.blocks.push_back(read_block_record(block));
  for (const auto& [name, steps] : value.at("steps").items())
    part.steps[read_name(name)] = read_number(steps);
  return part;
}

}  // namespace

std::string shard_part_file(int data_rank, const ParallelRank& tensor) {
  return place_of(data_rank, tensor) + ".json";
}

std::vector<std::string> shard_part_files(int tensor_size, int data_size) {
  std::vector<std::string> names;
  for (int tensor = 0; tensor < tensor_size; ++tensor)
    for (int data = 0; data < data_size; ++data)
      names.push_back(shard_part_file(data, {tensor, tensor_size}));
  return names;
}

std::string block_file(int data_rank, const ParallelRank& tensor, std::size_t block) {
  return fmt::format("{}/{}.tensor", place_of(data_rank, tensor), block);
}

std::string shard_part_text(const ShardPart& part) {
  json blocks = json::array();
  for (const ShardBlock& block : part.blocks) {
    json entry = to_json(block.file);
    entry["parameter"] = escaped_name(block.parameter);
    entry["key"] = escaped_name(block.key);
    entry["shape"] = block.sizes;
    entry["begin"] = block.begin;
    entry["elements"] = block.elements;
    blocks.push_back(std::move(entry));
  }
  json steps = json::object();
  for (const auto& [name, count] : part.steps) steps[escaped_name(name)] = count;
  json text{{"schema", kShardPartSchema}};
  text["blocks"] = std::move(blocks);
  text["steps"] = std::move(steps);
  return sealed(text.dump());
}

Result<ShardPart> parse_shard_part(std::string_view text, const std::string& path) {
  return parse_sealed(text, path, kShardPartSchema, read_part);
}

Result<ShardIndex> ShardIndex::make(const std::vector<ShardPart>& parts, const ParallelRank& tensor,
                                    const std::string& path) {
  ShardIndex index;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    for (std::size_t i = 0; i < parts[rank].blocks.size(); ++i) {
      const ShardBlock& block = parts[rank].blocks[i];
      index.states_[{block.parameter, block.key}].push_back(
          {block_file(static_cast<int>(rank), tensor, i), block});
    }
    index.steps_.insert(parts[rank].steps.begin(), parts[rank].steps.end());
  }
  for (auto& [key, blocks] : index.states_) {
    std::ranges::sort(blocks, {}, [](const Stored& of) { return of.block.begin; });
    std::int64_t next = 0;
    bool is_whole = true;
    for (const Stored& of : blocks) {
      is_whole = is_whole && of.block.begin == next && of.block.sizes == blocks[0].block.sizes;
      next += of.block.elements;
    }
    if (!is_whole || next != numel(blocks[0].block.sizes))
      return damaged(path, fmt::format("its blocks of '{}/{}' are not the whole of shape {}",
                                       key.first, key.second, shape_text(blocks[0].block.sizes)));
  }
  return index;
}

std::vector<const ShardIndex::Stored*> ShardIndex::blocks_of(const Key& key, std::int64_t begin,
                                                             std::int64_t elements) const {
  std::vector<const Stored*> found;
  const auto at = states_.find(key);
  if (at == states_.end()) return found;
  const std::vector<Stored>& blocks = at->second;
  const auto end_of = [](const Stored& of) { return of.block.begin + of.block.elements; };
  for (auto next = std::ranges::upper_bound(blocks, begin, {}, end_of);
       next != blocks.end() && next->block.begin < begin + elements; ++next)
    found.push_back(&*next);
  return found;
}

Result<std::string> read_shard_file(FileSystem& files, const std::string& path,
                                    const FileRecord& record) {
  auto bytes = files.read(path, record.bytes);
  if (!bytes) return damaged(path, bytes.error().reason);
  if (record_of(*bytes) != record) return damaged(path, "its checksum does not match");
  return std::move(*bytes);
}

Result<std::vector<double>> read_block(FileSystem& files, const std::string& path,
                                       const ShardIndex::Stored& stored) {
  const std::string at = path + "/" + stored.file;
  const auto bytes = read_shard_file(files, at, stored.block.file);
  if (!bytes) return tl::unexpected(bytes.error());
  auto tensor = parse_tensor(*bytes, at);
  if (!tensor) return tl::unexpected(tensor.error());
  if (std::ssize(tensor->values) != stored.block.elements)
    return damaged(at, fmt::format("it has {} elements and not {}", tensor->values.size(),
                                   stored.block.elements));
  return std::move(tensor->values);
}

}  // namespace zeroproof
