#include "engine/files/posix_file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace zeroproof {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (is_open()) ::close(number_);
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

tl::unexpected<FileFault> fault_of_errno() {
  return file_fault(std::strerror(errno));
}

FileResult<void> outcome(const std::error_code& error) {
  if (error) return file_fault(error.message());
  return {};
}

class PosixFile final : public WritableFile {
 public:
  explicit PosixFile(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  FileResult<std::size_t> write_some(std::string_view bytes) override {
    for (;;) {
      const ssize_t put = ::write(descriptor_.number(), bytes.data(), bytes.size());
      if (put >= 0) return static_cast<std::size_t>(put);
      if (errno != EINTR) return fault_of_errno();
    }
  }

  FileResult<void> sync() override {
    if (::fsync(descriptor_.number()) != 0) return fault_of_errno();
    return {};
  }

 private:
  Descriptor descriptor_;
};

FileResult<std::string> read_to_end(int descriptor, std::uint64_t bytes_max) {
  std::string bytes;
  char chunk[65536];
  for (;;) {
    const ssize_t count = ::read(descriptor, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fault_of_errno();
    if (count == 0) return bytes;
    bytes.append(chunk, static_cast<std::size_t>(count));
    if (bytes.size() > bytes_max) {
      return file_fault(fmt::format("it has more than {} bytes", bytes_max));
    }
  }
}

FileResult<Descriptor> open_to_read(const std::string& path) {
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) return fault_of_errno();
  struct stat status = {};
  if (::fstat(descriptor.number(), &status) != 0) return fault_of_errno();
  if (S_ISDIR(status.st_mode)) return file_fault("it is a directory");
  return descriptor;
}

FileResult<std::string> read_from(int descriptor, std::uint64_t begin, std::size_t bytes) {
  std::string piece(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t count =
        ::pread(descriptor, piece.data() + done, bytes - done, static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fault_of_errno();
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  piece.resize(done);
  return piece;
}

class PosixFileSystem final : public RangedFileSystem {
 public:
  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    Descriptor descriptor(::open(path.c_str(), kFlags, 0666));
    if (!descriptor.is_open()) return fault_of_errno();
    return std::make_unique<PosixFile>(std::move(descriptor));
  }

  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    const auto descriptor = open_to_read(path);
    if (!descriptor) return tl::unexpected(descriptor.error());
    return read_to_end(descriptor->number(), bytes_max);
  }

  FileResult<std::string> read_range(const std::string& path, std::uint64_t begin,
                                     std::size_t bytes) override {
    const auto descriptor = open_to_read(path);
    if (!descriptor) return tl::unexpected(descriptor.error());
    return read_from(descriptor->number(), begin, bytes);
  }

  FileResult<std::vector<std::string>> list(const std::string& folder) override {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    if (error) return file_fault(error.message());
    std::sort(names.begin(), names.end());
    return names;
  }

  bool exists(const std::string& path) override {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
  }

  FileResult<void> make_folders(const std::string& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    return outcome(error);
  }

  FileResult<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return fault_of_errno();
    return {};
  }

  FileResult<void> remove_all(const std::string& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    return outcome(error);
  }

  FileResult<void> sync_folder(const std::string& path) override {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!descriptor.is_open()) return fault_of_errno();
    // Some file systems cannot sync a folder; they say EINVAL.
    if (::fsync(descriptor.number()) != 0 && errno != EINVAL) return fault_of_errno();
    return {};
  }
};

}  // namespace

RangedFileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

}  // namespace zeroproof
