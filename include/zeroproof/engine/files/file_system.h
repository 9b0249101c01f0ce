#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace zeroproof {

// Why a file operation failed, without the path: "No space left on device". The caller makes the
// sentence, for it knows what the file was for.
struct FileFault {
  std::string reason;
};

template <class T>
using FileResult = tl::expected<T, FileFault>;

inline tl::unexpected<FileFault> file_fault(std::string reason) {
  return tl::unexpected<FileFault>(FileFault{std::move(reason)});
}

// A file being written from its beginning. Closed when destroyed; what was not synced by then may
// be lost in a crash.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // How many of the bytes were taken: at least one, possibly not all.
  virtual FileResult<std::size_t> write_some(std::string_view bytes) = 0;
  virtual FileResult<void> sync() = 0;
};

// The part of a file system that durable files need. It promises no more than POSIX: bytes survive
// a crash once their file was synced, names once their folder was; a rename is atomic. Paths are
// separated by '/'.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Truncates what is there.
  virtual FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) = 0;
  // The whole file; a fault if it is larger than `bytes_max`.
  virtual FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) = 0;
  virtual FileResult<std::vector<std::string>> list(const std::string& folder) = 0;  // sorted
  virtual bool exists(const std::string& path) = 0;

  // With its parents; no fault if it exists.
  virtual FileResult<void> make_folders(const std::string& path) = 0;
  // Replaces a file that is there.
  virtual FileResult<void> rename(const std::string& from, const std::string& to) = 0;
  // A file, or a folder with all it holds; no fault if the path is free.
  virtual FileResult<void> remove_all(const std::string& path) = 0;
  virtual FileResult<void> sync_folder(const std::string& path) = 0;
};

FileResult<void> write_all(WritableFile& file, std::string_view bytes);
// A new file whose bytes survive a crash; its name does once the folder is synced.
FileResult<void> write_synced(FileSystem& files, const std::string& path, std::string_view bytes);

// The folder a path lies in; "." for a bare name.
std::string folder_of(const std::string& path);

}  // namespace zeroproof
