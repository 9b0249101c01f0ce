#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/manifest.h"
#include "zeroproof/engine/files/file_system.h"

namespace zeroproof {

// A checkpoint while it is saved, of whatever parts: everything goes into a folder that no reader
// looks at; one rename makes it a checkpoint, another makes it the latest. Each rank that saves has
// one; between prepare(), its own writes, commit() and confirm() all meet. Not thread-safe.
class CheckpointFolder {
 public:
  // `head` is the manifest without its parts, whose files are `part_files`. All references must
  // outlive it.
  CheckpointFolder(FileSystem& files, std::string folder, const SaveOptions& options, Manifest head,
                   std::vector<std::string> part_files);

  virtual ~CheckpointFolder() = default;
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  using Barrier = std::function<void()>;

  // The whole save. `checked`: what was found wrong with this rank's state; the ranks meet all the
  // same. One of them leads.
  Result<void> save(bool is_leader, Result<void> checked);

  // Its three parts, in this order, for who does other things in between. Each returns the outcome
  // so far; a part that follows an error does no more than meet. Only begin() and finish() meet.
  Result<void> begin(bool is_leader, Result<void> checked, const Barrier& barrier);
  Result<void> write_own();
  Result<void> finish(const Barrier& barrier);
  // Of the leader, after write_own(): commits if all ranks have written already. False: not yet.
  bool commit_if_written();
  // Of the leader, in place of finish(): the folder is as it was before begin().
  void abandon();

 protected:
  // This rank's files and, last, its record.
  virtual Result<void> write_part() = 0;
  // A file below the checkpoint, in a folder that make_folder() made.
  Result<void> write(const std::string& name, std::string_view bytes);
  // The same in pieces, which `fill` gives to its argument; for files that are larger than memory.
  using Append = std::function<Result<void>(std::string_view piece)>;
  Result<FileRecord> write_pieces(const std::string& name,
                                  const std::function<Result<void>(const Append&)>& fill);
  // Seen by the leader only once it and what it names are durable: it finishes the checkpoint by
  // it.
  Result<void> write_part_record(const std::string& name, const std::string& text);
  Result<void> make_folder(const std::string& name);
  Result<void> sync_folder(const std::string& path);

  const Manifest& head() const { return head_; }  // without its parts

  FileSystem& files_;
  std::string folder_;
  std::string saving_;
  const SaveOptions& options_;

 private:
  Result<void> prepare();
  Result<void> commit();
  Result<void> confirm();
  std::string latest_path() const;
  bool may_be_latest(const std::string& path) const;
  FileResult<void> clear_leftovers();
  Result<Manifest> manifest_of_all_parts();
  CheckpointName next_name();
  void remove_older(const CheckpointName& newest);

  Manifest head_;
  std::vector<std::string> part_files_;
  std::string tag_;
  bool is_leader_ = false;
  Result<void> outcome_;        // of this rank, so far
  std::set<std::string> made_;  // folders of this rank
  std::string committed_;       // what this save is called since its rename
  FileRecord part_record_;
};

// The manifest of such a state without its parts, with the tag of the options or the default one.
Manifest head_of(const TrainingState& state, const SaveOptions& options);

}  // namespace zeroproof
