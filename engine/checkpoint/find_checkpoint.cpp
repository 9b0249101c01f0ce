#include "engine/checkpoint/find_checkpoint.h"

#include <fmt/format.h>

#include "engine/checkpoint/manifest.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kLatestBytesMax = 4096;

std::string advice(FileSystem& files, const std::string& folder) {
  std::string tags;
  for (const CheckpointName& name : checkpoints_in(files, folder)) {
    if (tags.ends_with(" " + name.tag)) continue;
    tags += (tags.empty() ? " " : ", ") + name.tag;
  }
  return tags.empty() ? "no checkpoint is there; name the folder that was saved to"
                      : "load one of these tags:" + tags;
}

tl::unexpected<Error> not_found(FileSystem& files, const std::string& folder,
                                const std::string& what) {
  return fail(ErrorCode::unreadable, fmt::format("{}; {}", what, advice(files, folder)));
}

Result<std::string> find_latest(FileSystem& files, const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kLatestFile);
  const auto text = files.read(path, kLatestBytesMax);
  if (!text) {
    return not_found(files, folder,
                     fmt::format("{}: cannot be read: {}", path, text.error().reason));
  }
  const auto name = parse_latest(*text, path);
  if (!name) return tl::unexpected(name.error());
  return folder + "/" + *name;
}

}  // namespace

std::vector<CheckpointName> checkpoints_in(FileSystem& files, const std::string& folder) {
  std::vector<CheckpointName> found;
  for (const std::string& entry : files.list(folder).value_or(std::vector<std::string>{})) {
    const auto name = checkpoint_name(entry);
    if (name && files.exists(fmt::format("{}/{}/{}", folder, entry, kManifestFile))) {
      found.push_back(*name);
    }
  }
  return found;
}

Result<std::string> find_checkpoint(FileSystem& files, const std::string& folder,
                                    const std::string& tag) {
  if (tag.empty()) return find_latest(files, folder);
  CheckpointName newest{.tag = tag, .generation = 0};
  for (const CheckpointName& name : checkpoints_in(files, folder)) {
    if (name.tag == tag && name.generation > newest.generation) newest = name;
  }
  if (newest.generation > 0) return folder + "/" + folder_name(newest);
  return not_found(files, folder, fmt::format("{}: has no checkpoint '{}'", folder, tag));
}

}  // namespace zeroproof
