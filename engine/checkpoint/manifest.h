#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/parallel_place.h"
#include "engine/checkpoint/training_state.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

inline constexpr std::uint64_t kManifestBytesMax = std::uint64_t{1} << 30;

// What a file must be to be taken.
struct FileRecord {
  std::uint64_t bytes = 0;
  std::string checksum;
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

FileRecord record_of(std::string_view bytes);

// One state of one parameter in a part: "fp32", "exp_avg", "step".
struct StoredTensor {
  std::string parameter;
  std::string key;
  FileRecord file;
};

// Which tensors one rank wrote, in the order of its state.
using PartManifest = std::vector<StoredTensor>;

// What a checkpoint consists of; written last. Paths follow from places and names
// (file_names.h), so none is stored.
struct Manifest {
  std::string tag;
  int tensor_size = 1;
  int expert_size = 1;
  int data_size = 0;  // of a checkpoint of shards: ranks that saved; 0: whole tensors
  // Expert-major: index = expert rank * tensor_size + tensor rank. Of shards tensor-major: index =
  // tensor rank * data_size + data rank.
  std::vector<FileRecord> parts;
  std::vector<ParameterGroup> groups;
  std::map<std::string, PartitionRule> rules;
  LossScaler::State loss_scaler;
  TrainingCounters counters;
  std::optional<SchedulerState> scheduler;
};

// The place of each part, in the order of `parts`.
std::vector<ParallelPlace> places_of(int tensor_size, int expert_size);

std::vector<std::string> part_files(int tensor_size, int expert_size);

// Each with its own checksum. `path` is for messages; code unreadable.
std::string part_text(const PartManifest& part);
Result<PartManifest> parse_part(std::string_view text, const std::string& path);
std::string manifest_text(const Manifest& manifest);
Result<Manifest> parse_manifest(std::string_view text, const std::string& path);
// The pointer to the newest checkpoint: its folder's name.
std::string latest_text(std::string_view folder);
Result<std::string> parse_latest(std::string_view text, const std::string& path);

// "PATH: is damaged (WHY); ..." with what to do about it.
tl::unexpected<Error> damaged(const std::string& path, std::string_view why);

}  // namespace zeroproof
