#include "engine/checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/files/atomic_file.h"

namespace zeroproof {
namespace {

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

tl::unexpected<Error> cannot_write_checkpoint(const std::string& path, const FileFault& fault) {
  return fail(ErrorCode::usage,
              fmt::format("{}: cannot be written: {}; make room or choose another folder. Earlier "
                          "checkpoints are as they were",
                          path, fault.reason));
}

}  // namespace

Manifest head_of(const TrainingState& state, const SaveOptions& options) {
  return {.tag = options.tag.empty() ? default_tag(state.counters) : options.tag,
          .tensor_size = options.place.tensor.size,
          .expert_size = options.place.expert.size,
          .parts = {},
          .groups = state.groups,
          .rules = state.partition_rules,
          .loss_scaler = state.loss_scaler,
          .counters = state.counters,
          .scheduler = state.scheduler};
}

CheckpointFolder::CheckpointFolder(FileSystem& files, std::string folder,
                                   const SaveOptions& options, Manifest head,
                                   std::vector<std::string> part_files)
    : files_(files),
      folder_(std::move(folder)),
      saving_(fmt::format("{}/{}", folder_, kSavingFolder)),
      options_(options),
      head_(std::move(head)),
      part_files_(std::move(part_files)),
      tag_(head_.tag) {}

Result<void> CheckpointFolder::save(bool is_leader, Result<void> checked) {
  (void)begin(is_leader, std::move(checked), options_.barrier);
  (void)write_own();
  return finish(options_.barrier);
}

// An error ends this rank's work, not its meetings: the others would wait forever.
Result<void> CheckpointFolder::begin(bool is_leader, Result<void> checked, const Barrier& barrier) {
  is_leader_ = is_leader;
  outcome_ = std::move(checked);
  if (is_leader_) {
    if (outcome_) outcome_ = prepare();
    if (!outcome_) abandon();
  }
  if (barrier) barrier();
  return outcome_;
}

Result<void> CheckpointFolder::write_own() {
  if (outcome_) outcome_ = write_part();
  return outcome_;
}

Result<void> CheckpointFolder::finish(const Barrier& barrier) {
  if (barrier) barrier();
  if (is_leader_) {
    if (outcome_ && committed_.empty()) outcome_ = commit();
    if (!outcome_) abandon();
  }
  if (barrier) barrier();
  if (outcome_ && !is_leader_) outcome_ = confirm();
  return outcome_;
}

bool CheckpointFolder::commit_if_written() {
  const auto is_there = [&](const std::string& file) {
    return files_.exists(saving_ + "/" + file);
  };
  if (outcome_ && !std::ranges::all_of(part_files_, is_there)) return false;
  if (outcome_) outcome_ = commit();
  return true;
}

Result<void> CheckpointFolder::prepare() {
  if (auto made = make_durable_folders(files_, folder_); !made) {
    return cannot_write_checkpoint(folder_, made.error());
  }
  if (auto cleared = clear_leftovers(); !cleared)
    return cannot_write_checkpoint(folder_, cleared.error());
  if (auto made = files_.make_folders(saving_); !made)
    return cannot_write_checkpoint(saving_, made.error());
  return {};
}

Result<void> CheckpointFolder::make_folder(const std::string& name) {
  const std::string path = saving_ + "/" + name;
  if (!made_.insert(path).second) return {};
  if (auto made = files_.make_folders(path); !made)
    return cannot_write_checkpoint(path, made.error());
  return {};
}

Result<void> CheckpointFolder::write_part_record(const std::string& name, const std::string& text) {
  for (const std::string& made : made_) {
    if (auto synced = sync_folder(made); !synced) return synced;
  }
  part_record_ = record_of(text);
  return write_file_atomically(files_, saving_ + "/" + name, text);
}

Result<void> CheckpointFolder::commit() {
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
Result<void> CheckpointFolder::confirm() {
  const auto path = find_checkpoint(files_, folder_, {});
  if (path) {
    const std::string at = fmt::format("{}/{}", *path, kManifestFile);
    const auto text = files_.read(at, kManifestBytesMax);
    const auto manifest = text ? parse_manifest(*text, at) : damaged(at, text.error().reason);
    if (manifest && std::ranges::find(manifest->parts, part_record_) != manifest->parts.end()) {
      return {};
    }
  }
  return fail(
      ErrorCode::usage,
      fmt::format("{}: checkpoint '{}' was not completed; see the error of rank 0", folder_, tag_));
}

// Makes room, so that the tag names what it named before. No caller is left to report to if that
// fails too.
void CheckpointFolder::abandon() {
  (void)files_.remove_all(saving_);
  if (!committed_.empty() && !may_be_latest(committed_)) (void)files_.remove_all(committed_);
}

std::string CheckpointFolder::latest_path() const {
  return fmt::format("{}/{}", folder_, kLatestFile);
}

// An unreadable `latest` may name any checkpoint.
bool CheckpointFolder::may_be_latest(const std::string& path) const {
  if (!files_.exists(latest_path())) return false;
  const auto named = find_checkpoint(files_, folder_, {});
  return !named || *named == path;
}

// Of a save that was cut short.
FileResult<void> CheckpointFolder::clear_leftovers() {
  if (auto removed = files_.remove_all(saving_); !removed) return removed;
  const auto entries = files_.list(folder_);
  if (!entries) return tl::unexpected(entries.error());
  for (const std::string& entry : *entries) {
    if (!entry.starts_with(fmt::format("{}.", kLatestFile))) continue;
    if (auto removed = files_.remove_all(folder_ + "/" + entry); !removed) return removed;
  }
  return {};
}

Result<void> CheckpointFolder::write(const std::string& name, std::string_view bytes) {
  const std::string path = saving_ + "/" + name;
  if (auto done = write_synced(files_, path, bytes); !done) {
    return cannot_write_checkpoint(path, done.error());
  }
  return {};
}

Result<FileRecord> CheckpointFolder::write_pieces(
    const std::string& name, const std::function<Result<void>(const Append&)>& fill) {
  const std::string path = saving_ + "/" + name;
  auto file = files_.create(path);
  if (!file) return cannot_write_checkpoint(path, file.error());
  FileRecord record;
  RunningChecksum checksum;
  const auto filled = fill([&](std::string_view piece) -> Result<void> {
    checksum.add(piece);
    record.bytes += piece.size();
    if (auto put = write_all(**file, piece); !put)
      return cannot_write_checkpoint(path, put.error());
    return {};
  });
  if (!filled) return tl::unexpected(filled.error());
  if (auto synced = (*file)->sync(); !synced) return cannot_write_checkpoint(path, synced.error());
  record.checksum = checksum.text();
  return record;
}

Result<void> CheckpointFolder::sync_folder(const std::string& path) {
  if (auto synced = files_.sync_folder(path); !synced)
    return cannot_write_checkpoint(path, synced.error());
  return {};
}

Result<Manifest> CheckpointFolder::manifest_of_all_parts() {
  Manifest manifest = head_;
  for (const std::string& file : part_files_) {
    const std::string path = saving_ + "/" + file;
    const auto text = files_.read(path, kManifestBytesMax);
    if (!text) {
      return fail(ErrorCode::usage,
                  fmt::format("{}: cannot be read: {}; see the error of the rank that writes it",
                              path, text.error().reason));
    }
    std::string_view line;
    if (!unseal(*text, line)) return damaged(path, "its checksum does not match");
    manifest.parts.push_back(record_of(*text));
  }
  return manifest;
}

// Never the name of a folder that is there: what `latest` names is not touched.
CheckpointName CheckpointFolder::next_name() {
  CheckpointName name{.tag = tag_, .generation = 1};
  for (const std::string& entry : files_.list(folder_).value_or(std::vector<std::string>{})) {
    const auto other = checkpoint_name(entry);
    if (other && other->tag == tag_)
      name.generation = std::max(name.generation, other->generation + 1);
  }
  return name;
}

// Replaced by what was just saved. One that stays is removed by the next save.
void CheckpointFolder::remove_older(const CheckpointName& newest) {
  for (const std::string& entry : files_.list(folder_).value_or(std::vector<std::string>{})) {
    const auto other = checkpoint_name(entry);
    const bool is_of_tag = other && other->tag == newest.tag;
    if (is_of_tag && other->generation < newest.generation) {
      (void)files_.remove_all(folder_ + "/" + entry);
    }
  }
}

}  // namespace zeroproof
