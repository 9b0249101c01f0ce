#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/shard_blocks.h"
#include "zeroproof/engine/files/file_system.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Which files a checkpoint of either layout consists of, by its manifests.

struct FoundCheckpoint {
  std::string path;  // of its folder
  Manifest manifest;
};

// `folder` is one that was saved to, or a checkpoint itself; the tag is of the former, and empty
// for the latest. Errors as load_checkpoint().
Result<FoundCheckpoint> read_manifest_in(FileSystem& files, const std::string& folder,
                                         const std::string& tag);

// The manifest of the checkpoint in the folder `path`. Error: names the file.
Result<Manifest> read_manifest_at(FileSystem& files, const std::string& path);

// The folder of the checkpoint that is meant. Only names are looked at.
Result<std::string> checkpoint_path(FileSystem& files, const std::string& folder,
                                    const std::string& tag);

// Names below the checkpoint, in the order of the manifest's parts.
std::vector<std::string> part_names(const Manifest& manifest);

// Some elements of a state, in a file of their own.
struct StoredPiece {
  std::string file;  // below the checkpoint
  FileRecord record;
  std::int64_t elements = -1;  // -1: the file alone says it
};

// One state of one parameter, as one tensor-parallel rank has it.
struct StoredState {
  std::string parameter;
  std::string key;
  ParallelPlace place;
  Shape sizes;  // of shards; of whole tensors the file says it
  std::vector<StoredPiece> pieces;
};

struct StoredPart {
  std::vector<StoredState> states;            // by parameter and key, weights first
  std::map<std::string, std::int64_t> steps;  // of shards; whole tensors have a state "step"
};

// The blocks of one tensor-parallel rank in the parts of all data-parallel ranks. Error: a part
// that is missing or damaged, blocks that do not make up a whole.
Result<ShardIndex> read_shard_index(FileSystem& files, const FoundCheckpoint& checkpoint,
                                    const ParallelRank& tensor);

// One a place (tensor-parallel rank, expert-parallel rank); expert-major. Error: a part that is
// missing or damaged, blocks that do not make up a whole.
Result<std::vector<StoredPart>> read_stored_parts(FileSystem& files,
                                                  const FoundCheckpoint& checkpoint);

}  // namespace zeroproof
