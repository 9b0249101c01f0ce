#include "props/train/checkpoint_use.h"

#include <stdexcept>

#include "engine/checkpoint/find_checkpoint.h"
#include "props/train/kept_files.h"
#include "props/train/scenario.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 20U;

void check(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.error().text);
}

}  // namespace

CheckpointUse::CheckpointUse(const CaseSpec& spec, Pass& pass)
    : spec_(spec), pass_(pass), engines_(dynamic_cast<EngineTarget&>(pass.target())) {}

FileSystem* CheckpointUse::files() const {
  return pass_.scenario().files.get();
}

void CheckpointUse::for_all(
    const std::function<void(Engine& engine, const std::string& folder)>& call) const {
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec_.engines); ++i)
    call(engines_.engine(i), "engine" + std::to_string(i));
}

void CheckpointUse::save(const std::string& tag) const {
  for_all([&](Engine& engine, const std::string& folder) {
    check(engine.save_checkpoint(folder, {.tag = tag, .files = files()}));
  });
}

void CheckpointUse::load(const std::string& tag) const {
  for_all([&](Engine& engine, const std::string& folder) {
    check(engine.load_checkpoint(folder, {.tag = tag, .files = files()}));
  });
}

bool CheckpointUse::try_out(Restores restores) const {
  bool is_refused = true;
  if (restores != Restores::missing) save("kept");
  if (restores == Restores::damaged && engines_.rank() == 0) damage();
  if (restores == Restores::saved) return is_refused;
  for_all([&](Engine& engine, const std::string& folder) {
    const std::string from = restores == Restores::missing ? folder + "-none" : folder;
    const EngineCheckpointOptions options{.tag = "kept", .files = files()};
    is_refused = is_refused && !engine.load_checkpoint(from, options);
  });
  return is_refused;
}

// One bit of one file, another one in each window.
void CheckpointUse::damage() const {
  for_all([&](Engine&, const std::string& folder) {
    std::vector<std::string> paths;
    const auto checkpoint = find_checkpoint(*files(), folder, "kept");
    if (checkpoint) add_files_below(*checkpoint, paths);
    if (paths.empty()) return;
    const std::string& path = paths[static_cast<std::size_t>(pass_.step_number()) % paths.size()];
    std::string bytes = files()->read(path, kFileBytesMax).value_or("");
    if (bytes.empty()) return;
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    const auto file = files()->create(path);
    if (file) (void)write_all(**file, bytes);
  });
}

void CheckpointUse::add_files_below(const std::string& folder,
                                    std::vector<std::string>& paths) const {
  for (const std::string& name : files()->list(folder).value_or(std::vector<std::string>{})) {
    const std::string path = folder + "/" + name;
    if (files()->read(path, kFileBytesMax)) {
      paths.push_back(path);
    } else {
      add_files_below(path, paths);
    }
  }
}

}  // namespace zeroproof::train
