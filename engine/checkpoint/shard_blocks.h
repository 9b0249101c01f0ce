#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/manifest.h"
#include "zeroproof/engine/files/file_system.h"
#include "zeroproof/model/result.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// A checkpoint of own shards: every rank writes what it has, in blocks of a file each, and a load
// reads the blocks that its ranges need. docs/reference/checkpoints.md 5 has the format.

// The largest block: what a save or a load holds of a tensor at a time.
inline constexpr std::int64_t kBlockElements = std::int64_t{1} << 20;

// Elements [begin, begin + elements) of one state of one parameter, in a file of its own.
struct ShardBlock {
  std::string parameter;
  std::string key;
  Shape sizes;  // of the whole
  std::int64_t begin = 0;
  std::int64_t elements = 0;
  FileRecord file;
};

// What one rank wrote: a block's file has the number of its place in the list.
struct ShardPart {
  std::vector<ShardBlock> blocks;
  std::map<std::string, std::int64_t> steps;  // of the optimizer, by parameter
};

std::string shard_part_file(int data_rank, const ParallelRank& tensor);  // "shards.tp0.dp1.json"
// All of them, in the order of a manifest's parts.
std::vector<std::string> shard_part_files(int tensor_size, int data_size);
std::string block_file(int data_rank, const ParallelRank& tensor, std::size_t block);
std::string shard_part_text(const ShardPart& part);
// Of any bytes; `path` is for messages; code unreadable.
Result<ShardPart> parse_shard_part(std::string_view text, const std::string& path);

// Which blocks of a checkpoint have which elements.
class ShardIndex {
 public:
  // The blocks of all data-parallel ranks that saved; `path` is the checkpoint's folder.
  static Result<ShardIndex> make(const std::vector<ShardPart>& parts, const ParallelRank& tensor,
                                 const std::string& path);

  struct Stored {
    std::string file;  // below the checkpoint
    ShardBlock block;
  };
  // By parameter and key, in the order of their elements, without gaps.
  using Key = std::pair<std::string, std::string>;
  const std::map<Key, std::vector<Stored>>& states() const { return states_; }
  const std::map<std::string, std::int64_t>& steps() const { return steps_; }
  // Those that have some of the elements [begin, begin + elements).
  std::vector<const Stored*> blocks_of(const Key& key, std::int64_t begin,
                                       std::int64_t elements) const;

 private:
  std::map<Key, std::vector<Stored>> states_;
  std::map<std::string, std::int64_t> steps_;
};

// The bytes of a file that a record describes. Error: names the file.
Result<std::string> read_shard_file(FileSystem& files, const std::string& path,
                                    const FileRecord& record);
// The elements of a block, read and checked. Error: names the file.
Result<std::vector<double>> read_block(FileSystem& files, const std::string& path,
                                       const ShardIndex::Stored& stored);

}  // namespace zeroproof
