#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/checkpoint/parallel_place.h"

namespace zeroproof {

// Names within a checkpoint folder (docs/reference/checkpoints.md).
inline constexpr std::string_view kLatestFile = "latest";
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kSavingFolder = ".saving";
inline constexpr std::string_view kWeightKey = "fp32";  // the master copy, whatever its dtype
inline constexpr std::string_view kStepKey = "step";    // one number, of whole tensors

// A name as a file's: everything but letters, digits, '.', '_' and '-' as %XX; a leading '.' too.
std::string escaped_name(std::string_view name);
std::optional<std::string> unescaped_name(std::string_view escaped);

// "zero/fc.weight", below a checkpoint.
std::string parameter_folder(std::string_view parameter);
// "zero/fc.weight/exp_avg.tensor"; a part is named after its place: "exp_avg.tp1.ep0.tensor".
std::string tensor_file(std::string_view parameter, std::string_view key,
                        const ParallelPlace& place);
std::string part_file(const ParallelPlace& place);  // "part.json", "part.tp1.ep0.json"

// A tag may be saved several times; each save has a folder of its own: "tag", "tag~2", ...
struct CheckpointName {
  std::string tag;
  int generation = 1;
};

bool is_tag(std::string_view text);
std::string folder_name(const CheckpointName& name);
std::optional<CheckpointName> checkpoint_name(std::string_view folder);

}  // namespace zeroproof
