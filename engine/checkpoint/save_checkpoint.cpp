#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/files/atomic_file.h"

namespace zeroproof {
namespace {

tl::unexpected<Error> cannot_write_checkpoint(const std::string& path, const FileFault& fault) {
  return fail(ErrorCode::usage,
              fmt::format("{}: cannot be written: {}; make room or choose another folder. Earlier "
                          "checkpoints are as they were",
                          path, fault.reason));
}

// Each new folder's name is synced in the one above it.
FileResult<void> make_durable_folders(FileSystem& files, const std::string& path) {
  if (files.exists(path)) return {};
  const std::string above = folder_of(path);
  if (above != path) {
    if (auto made = make_durable_folders(files, above); !made) return made;
  }
  if (auto made = files.make_folders(path); !made) return made;
  return files.sync_folder(above);
}

std::string default_tag(const TrainingCounters& counters) {
  return fmt::format("global_step{}", counters.global_steps);
}

// One rank's work. Everything goes into a folder that no reader looks at; one rename makes it a
// checkpoint, another makes it the latest.
class Saver {
 public:
  Saver(const TrainingState& state, FileSystem& files, std::string folder,
        const SaveOptions& options)
      : state_(state),
        files_(files),
        folder_(std::move(folder)),
        saving_(fmt::format("{}/{}", folder_, kSavingFolder)),
        tag_(options.tag.empty() ? default_tag(state.counters) : options.tag),
        options_(options) {}

  bool is_leader() const {
    return options_.place.tensor.rank == 0 && options_.place.expert.rank == 0;
  }

  Result<void> prepare() {
    if (auto made = make_durable_folders(files_, folder_); !made) {
      return cannot_write_checkpoint(folder_, made.error());
    }
    if (auto cleared = clear_leftovers(); !cleared)
      return cannot_write_checkpoint(folder_, cleared.error());
    const std::string zero = saving_ + "/zero";
    if (auto made = files_.make_folders(zero); !made)
      return cannot_write_checkpoint(zero, made.error());
    return {};
  }

  Result<void> write_part() {
    PartManifest part;
    for (const FullTensor& tensor : state_.parameters) {
      const StoredTensor record{tensor.name, std::string(kWeightKey), {}};
      if (auto written = write_tensor(tensor, record, part); !written) return written;
    }
    for (const FullTensor& tensor : state_.optimizer_state) {
      StateName name = state_name(tensor.name);
      const StoredTensor record{std::move(name.parameter), std::move(name.key), {}};
      if (auto written = write_tensor(tensor, record, part); !written) return written;
    }
    for (const std::string& made : folders_) {
      if (auto synced = sync_folder(made); !synced) return synced;
    }
    if (auto synced = sync_folder(saving_ + "/zero"); !synced) return synced;
    const std::string text = part_text(part);
    part_record_ = record_of(text);
    // Seen by the first rank only once it is durable: that rank finishes the checkpoint by it.
    return write_file_atomically(files_, saving_ + "/" + part_file(options_.place), text);
  }

  Result<void> commit() {
    auto manifest = manifest_of_all_parts();
    if (!manifest) return tl::unexpected(manifest.error());
    auto written = write(std::string(kManifestFile), manifest_text(*manifest));
    if (!written) return written;
    if (auto synced = sync_folder(saving_); !synced) return synced;

    const CheckpointName name = next_name();
    const std::string target = folder_ + "/" + folder_name(name);
    const std::string latest = latest_path();
    if (auto moved = files_.rename(saving_, target); !moved) {
      return cannot_write_checkpoint(target, moved.error());
    }
    committed_ = target;
    if (auto synced = sync_folder(folder_); !synced) return synced;
    written = write_file_atomically(files_, latest, latest_text(folder_name(name)));
    if (written) remove_older(name);
    return written;
  }

  // What another rank committed has this rank's part.
  Result<void> confirm() {
    const auto path = find_checkpoint(files_, folder_, {});
    if (path) {
      const std::string at = fmt::format("{}/{}", *path, kManifestFile);
      const auto text = files_.read(at, kManifestBytesMax);
      const auto manifest = text ? parse_manifest(*text, at) : damaged(at, text.error().reason);
      if (manifest && std::ranges::find(manifest->parts, part_record_) != manifest->parts.end()) {
        return {};
      }
    }
    return fail(ErrorCode::usage,
                fmt::format("{}: checkpoint '{}' was not completed; see the error of rank 0",
                            folder_, tag_));
  }

  // After an error: makes room, so that the tag names what it named before. No caller is left to
  // report to if that fails too.
  void abandon() {
    (void)files_.remove_all(saving_);
    if (!committed_.empty() && !may_be_latest(committed_)) (void)files_.remove_all(committed_);
  }

 private:
  std::string latest_path() const { return fmt::format("{}/{}", folder_, kLatestFile); }

  // An unreadable `latest` may name any checkpoint.
  bool may_be_latest(const std::string& path) const {
    if (!files_.exists(latest_path())) return false;
    const auto named = find_checkpoint(files_, folder_, {});
    return !named || *named == path;
  }

  // Of a save that was cut short.
  FileResult<void> clear_leftovers() {
    if (auto removed = files_.remove_all(saving_); !removed) return removed;
    const auto entries = files_.list(folder_);
    if (!entries) return tl::unexpected(entries.error());
    for (const std::string& entry : *entries) {
      if (!entry.starts_with(fmt::format("{}.", kLatestFile))) continue;
      if (auto removed = files_.remove_all(folder_ + "/" + entry); !removed) return removed;
    }
    return {};
  }

  // What every rank has alike is written by the first.
  bool is_written_here(const StoredTensor& record) const {
    const auto found = state_.partition_rules.find(record.parameter);
    const bool has_rule = found != state_.partition_rules.end();
    const bool is_part = is_shaped_as_parameter(record.key);
    const bool is_expert = is_part && has_rule && found->second.experts > 0;
    const bool is_cut = is_part && has_rule && found->second.kind != PartitionKind::replicated;
    return (is_expert || options_.place.expert.rank == 0) &&
           (is_cut || options_.place.tensor.rank == 0);
  }

  Result<void> write_tensor(const FullTensor& tensor, StoredTensor record, PartManifest& part) {
    if (!is_written_here(record)) return {};
    const std::string folder = saving_ + "/" + parameter_folder(record.parameter);
    if (folders_.insert(folder).second) {
      if (auto made = files_.make_folders(folder); !made)
        return cannot_write_checkpoint(folder, made.error());
    }
    const std::string bytes = tensor_bytes(tensor, options_.dtype);
    record.file = record_of(bytes);
    auto written = write(tensor_file(record.parameter, record.key, options_.place), bytes);
    part.push_back(std::move(record));
    return written;
  }

  Result<void> write(const std::string& name, std::string_view bytes) {
    const std::string path = saving_ + "/" + name;
    if (auto done = write_synced(files_, path, bytes); !done) {
      return cannot_write_checkpoint(path, done.error());
    }
    return {};
  }

  Result<void> sync_folder(const std::string& path) {
    if (auto synced = files_.sync_folder(path); !synced)
      return cannot_write_checkpoint(path, synced.error());
    return {};
  }

  Result<Manifest> manifest_of_all_parts() {
    const ParallelPlace& own = options_.place;
    Manifest manifest{.tag = tag_,
                      .tensor_size = own.tensor.size,
                      .expert_size = own.expert.size,
                      .parts = {},
                      .groups = state_.groups,
                      .rules = state_.partition_rules,
                      .loss_scaler = state_.loss_scaler,
                      .counters = state_.counters,
                      .scheduler = state_.scheduler};
    for (const ParallelPlace& place : places_of(own.tensor.size, own.expert.size)) {
      const std::string path = saving_ + "/" + part_file(place);
      const auto text = files_.read(path, kManifestBytesMax);
      if (!text) {
        return fail(ErrorCode::usage,
                    fmt::format("{}: cannot be read: {}; see the error of the rank that writes it",
                                path, text.error().reason));
      }
      if (auto part = parse_part(*text, path); !part) return tl::unexpected(part.error());
      manifest.parts.push_back(record_of(*text));
    }
    return manifest;
  }

  // Never the name of a folder that is there: what `latest` names is not touched.
  CheckpointName next_name() {
    CheckpointName name{.tag = tag_, .generation = 1};
    for (const std::string& entry : files_.list(folder_).value_or(std::vector<std::string>{})) {
      const auto other = checkpoint_name(entry);
      if (other && other->tag == tag_)
        name.generation = std::max(name.generation, other->generation + 1);
    }
    return name;
  }

  // Replaced by what was just saved. One that stays is removed by the next save.
  void remove_older(const CheckpointName& newest) {
    for (const std::string& entry : files_.list(folder_).value_or(std::vector<std::string>{})) {
      const auto other = checkpoint_name(entry);
      const bool is_of_tag = other && other->tag == newest.tag;
      if (is_of_tag && other->generation < newest.generation) {
        (void)files_.remove_all(folder_ + "/" + entry);
      }
    }
  }

  const TrainingState& state_;
  FileSystem& files_;
  std::string folder_;
  std::string saving_;
  std::string tag_;
  const SaveOptions& options_;
  std::set<std::string> folders_;  // made by this rank
  std::string committed_;          // what this save is called since its rename
  FileRecord part_record_;
};

}  // namespace

Result<void> save_checkpoint(const TrainingState& state, FileSystem& files,
                             const std::string& folder, const SaveOptions& options) {
  Saver saver(state, files, folder, options);
  const auto meet = [&] {
    if (options.barrier) options.barrier();
  };
  // An error ends this rank's work, not its meetings: the others would wait for ever.
  Result<void> result = check_saved_state(state, options);
  if (saver.is_leader()) {
    if (result) result = saver.prepare();
    if (!result) saver.abandon();
  }
  meet();
  if (result) result = saver.write_part();
  meet();
  if (saver.is_leader()) {
    if (result) result = saver.commit();
    if (!result) saver.abandon();
  }
  meet();
  if (result && !saver.is_leader()) result = saver.confirm();
  return result;
}

}  // namespace zeroproof
