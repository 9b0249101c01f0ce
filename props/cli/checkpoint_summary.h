#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/stored_files.h"
#include "engine/files/ranged_file_system.h"
#include "props/report/palette.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof {

// What `zeroproof checkpoint inspect` prints.

struct StateSummary {
  std::string parameter;
  std::string key;
  ParallelPlace place;
  Shape sizes;
  DType dtype = DType::float32;
  std::uint64_t bytes = 0;  // of its files
  std::size_t files = 0;
};

struct CheckpointSummary {
  FoundCheckpoint checkpoint;
  std::vector<StateSummary> states;
  std::vector<std::int64_t> steps;  // of the optimizer: every number that occurs, ascending
};

// Reads the manifests, and the first bytes of each tensor file. Error: names the file.
Result<CheckpointSummary> summarize_checkpoint(RangedFileSystem& files, const std::string& folder,
                                               const std::string& tag);

std::string text_of(const CheckpointSummary& summary, const Palette& palette);
std::string json_of(const CheckpointSummary& summary);

}  // namespace zeroproof
