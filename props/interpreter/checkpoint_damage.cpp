#include "props/interpreter/checkpoint_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"

namespace zeroproof::program {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 20U;

enum class Damage : std::uint8_t { middle, end, shorter, longer, removed, pointer, all };
constexpr int kDamages = 7;
constexpr int kTags = 2;

Damage damage_of(int number) {
  return static_cast<Damage>(number % kDamages);
}

void add_files_below(FileSystem& files, const std::string& folder,
                     std::vector<std::string>& paths) {
  for (const std::string& name : files.list(folder).value_or(std::vector<std::string>{})) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (files.read(path, kFileBytesMax)) {
      paths.push_back(path);
    } else {
      add_files_below(files, path, paths);
    }
  }
}

void flip(std::string& bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
}

void damage_file(FileSystem& files, const std::string& path, Damage damage) {
  std::string bytes = files.read(path, kFileBytesMax).value_or("");
  if (damage == Damage::removed || bytes.empty()) {
    (void)files.remove_all(path);
    return;
  }
  if (damage == Damage::middle) flip(bytes, bytes.size() / 2);
  if (damage == Damage::end) flip(bytes, bytes.size() - 1);
  if (damage == Damage::shorter) bytes.pop_back();
  if (damage == Damage::longer) bytes.push_back('\0');
  (void)write_synced(files, path, bytes);
}

// The second step of a group that has two of them; null: none has.
FullTensor* second_step(TrainingState& state) {
  for (const ParameterGroup& group : state.groups) {
    std::set<std::string> steps;
    for (const std::string& name : group.parameters) steps.insert(name + "/step");
    int count = 0;
    for (FullTensor& tensor : state.optimizer_state)
      if (steps.contains(tensor.name) && !tensor.values.empty() && ++count == 2) return &tensor;
  }
  return nullptr;
}

void rename_first(TrainingState& state) {
  const std::string from = state.parameters.front().name;
  const std::string to = from + "x";
  state.parameters.front().name = to;
  for (FullTensor& tensor : state.optimizer_state)
    if (tensor.name.starts_with(from + "/")) tensor.name = to + tensor.name.substr(from.size());
}

}  // namespace

void damage_checkpoint(FileSystem& files, const std::string& folder, const std::string& tag,
                       int number) {
  const Damage damage = damage_of(number);
  const auto how = static_cast<std::size_t>(number / (kDamages * kTags));
  if (damage == Damage::pointer) {
    const auto as_file = static_cast<Damage>(how % static_cast<std::size_t>(Damage::pointer));
    return damage_file(files, folder + "/" + std::string(kLatestFile), as_file);
  }
  const auto checkpoint = find_checkpoint(files, folder, tag);
  if (!checkpoint) return;
  if (damage == Damage::all) {
    (void)files.remove_all(*checkpoint);
    return;
  }
  std::vector<std::string> paths;
  add_files_below(files, *checkpoint, paths);
  if (!paths.empty()) damage_file(files, paths[how % paths.size()], damage);
}

std::string damaged_tag(const std::string& tag, int number, bool is_newest) {
  const Damage damage = damage_of(number);
  const bool asks_latest = damage == Damage::all || number / kDamages % kTags != 0;
  const bool is_latest = damage == Damage::pointer || (is_newest && asks_latest);
  return is_latest ? std::string() : tag;
}

TrainingState misfitted(TrainingState state, int number) {
  const int kind = number % 7;
  FullTensor* const step = second_step(state);
  if (kind == 1 && step) {
    step->values.front() += 1.0;
  } else if (kind == 2) {
    state.parameters.front().sizes.push_back(1);
  } else if (kind == 3) {
    rename_first(state);
  } else if (kind == 4 && !state.optimizer_state.empty()) {
    state.optimizer_state.pop_back();
  } else if (kind == 6) {  // of another optimizer
    const FullTensor& first = state.parameters.front();
    state.optimizer_state.push_back({first.name + "/unknown", first.sizes, first.values});
  } else if (kind == 5) {
    state.parameters.push_back({"unknown", {1}, {0.0}});
  } else {
    state.groups.push_back({});
  }
  return state;
}

}  // namespace zeroproof::program
