#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "zeroproof/engine/files/file_system.h"

namespace zeroproof::program {

// What one rank does with files that all ranks share. Counts what it writes and reads, and fails
// on request, as a full disk or one that is gone does. The first write to a file takes half
// of the bytes. Not thread-safe.
class RankFiles final : public FileSystem {
 public:
  // Must outlive it.
  explicit RankFiles(FileSystem& files) : files_(files) {}

  // The n-th call from now on that needs room fails, and if it lasts all calls after it.
  void fail_write(int n, bool lasts);
  void fail_read(int n);  // the n-th from now on and all after it
  void heal();            // no call fails
  // Calls since the last fail_ or heal(); of the writes to a file the first. What only removes
  // needs no room and is not counted.
  int writes() const { return writes_; }
  // Whether a power failure now would take something written since the last heal(), or could have
  // left a name, renamed meanwhile, of what was not yet there for good.
  bool is_durable() const { return bytes_.empty() && names_.empty() && !is_renamed_early_; }

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override;
  FileResult<std::vector<std::string>> list(const std::string& folder) override;
  bool exists(const std::string& path) override { return files_.exists(path); }
  FileResult<void> make_folders(const std::string& path) override;
  FileResult<void> rename(const std::string& from, const std::string& to) override;
  FileResult<void> remove_all(const std::string& path) override;
  FileResult<void> sync_folder(const std::string& path) override;

 private:
  class File;
  bool has_room();  // for one more call

  FileSystem& files_;
  int writes_ = 0;
  int reads_ = 0;
  int failing_write_ = 0;  // 0: none
  int failing_read_ = 0;
  bool lasts_ = false;
  std::set<std::string> bytes_;  // files whose bytes, and paths whose names, are not synced
  std::set<std::string> names_;
  bool is_renamed_early_ = false;
};

}  // namespace zeroproof::program
