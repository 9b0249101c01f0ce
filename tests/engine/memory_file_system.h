#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/files/ranged_file_system.h"

namespace zeroproof {

enum class FileFaultKind : std::uint8_t {
  none,
  crash,     // the operation happens in part or not at all, and all after it fail
  io_error,  // this one operation fails
  no_space,  // from here on no new bytes can be written
};

// What a crash leaves of what was not synced.
enum class CrashLoss : std::uint8_t { everything, nothing, at_random };

// A file system in memory that promises no more than POSIX does: bytes are durable once their file
// was synced, and a name once its folder was. It can fail at any operation, and crash.
class MemoryFileSystem final : public RangedFileSystem {
 public:
  MemoryFileSystem();

  // Faults the n-th operation that changes something, from 0 on.
  void set_fault(FileFaultKind kind, std::int64_t operation);
  void set_write_max(std::size_t bytes) { write_max_ = bytes; }  // short writes
  std::int64_t operations() const { return operations_; }
  bool has_crashed() const { return has_crashed_; }
  std::size_t largest_piece() const { return largest_piece_; }  // bytes that one call moved

  // The machine after a crash and a restart. Without loss: an independent copy, all of it durable.
  MemoryFileSystem after_crash(CrashLoss loss, std::uint64_t seed = 0) const;

  std::vector<std::string> all_files() const;  // paths, sorted
  std::string bytes_of(const std::string& path) const;
  void set_bytes(const std::string& path, std::string bytes);  // durable at once, no operation

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override;
  FileResult<std::string> read_range(const std::string& path, std::uint64_t begin,
                                     std::size_t bytes) override;
  FileResult<std::vector<std::string>> list(const std::string& folder) override;
  bool exists(const std::string& path) override;
  FileResult<void> make_folders(const std::string& path) override;
  FileResult<void> rename(const std::string& from, const std::string& to) override;
  FileResult<void> remove_all(const std::string& path) override;
  FileResult<void> sync_folder(const std::string& path) override;

 private:
  struct Inode;
  class File;
  using InodePtr = std::shared_ptr<Inode>;
  using Entries = std::map<std::string, InodePtr>;
  // A change of a folder that is not synced: names that vanish, one that appears.
  struct Change {
    std::vector<std::string> erased;
    std::string name;
    InodePtr inode;
  };
  struct Inode {
    bool is_folder = false;
    std::string bytes;
    std::string durable_bytes;
    Entries entries;
    Entries durable_entries;
    std::vector<Change> pending;

    void apply(const Change& change);
  };
  class Chance;

  // Whether the operation may go on; counts it.
  FileResult<void> begin(bool needs_space);
  InodePtr find(const std::string& path) const;
  FileResult<InodePtr> folder_above(const std::string& path) const;
  FileResult<void> remove_below(Inode& folder, const std::string& name);
  static InodePtr restarted(const Inode& inode, Chance& chance);

  InodePtr root_;
  FileFaultKind fault_ = FileFaultKind::none;
  std::int64_t fault_at_ = -1;
  std::int64_t operations_ = 0;
  std::size_t write_max_ = SIZE_MAX;
  std::size_t largest_piece_ = 0;
  bool has_crashed_ = false;
};

}  // namespace zeroproof
