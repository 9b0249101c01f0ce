#include "sim/trace/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sim/trace/gzip.h"

namespace zeroproof {
namespace {

std::string system_error(std::string_view what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

class FileSource final : public ByteSource {
 public:
  explicit FileSource(int descriptor) : descriptor_(descriptor) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  tl::expected<std::size_t, std::string> read(std::span<char> out) override {
    while (true) {
      const ssize_t got = ::read(descriptor_, out.data(), out.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return tl::unexpected(system_error("cannot be read"));
    }
  }

 private:
  int descriptor_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}

  tl::expected<std::size_t, std::string> read(std::span<char> out) override {
    const std::size_t size = std::min(out.size(), rest_.size());
    std::copy_n(rest_.begin(), size, out.begin());
    rest_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view rest_;
};

// Gives back bytes that were read ahead, then the rest: pipes cannot be rewound.
class PrefixedSource final : public ByteSource {
 public:
  PrefixedSource(std::string prefix, std::unique_ptr<ByteSource> rest)
      : prefix_(std::move(prefix)), rest_(std::move(rest)) {}

  tl::expected<std::size_t, std::string> read(std::span<char> out) override {
    if (at_ == prefix_.size()) return rest_->read(out);
    const std::size_t size = prefix_.copy(out.data(), out.size(), at_);
    at_ += size;
    return size;
  }

 private:
  std::string prefix_;
  std::size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

ByteSourceResult recognise(std::unique_ptr<ByteSource> raw) {
  std::array<char, 2> magic{};
  std::size_t size = 0;
  while (size < magic.size()) {
    const auto got = raw->read(std::span(magic).subspan(size));
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) break;
    size += *got;
  }
  const std::string prefix(magic.data(), size);
  auto whole = std::make_unique<PrefixedSource>(prefix, std::move(raw));
  if (starts_like_gzip(prefix)) return make_gzip_source(std::move(whole));
  return whole;
}

}  // namespace

ByteSourceResult open_file_source(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return tl::unexpected(system_error("cannot be opened"));
  auto file = std::make_unique<FileSource>(descriptor);
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return tl::unexpected(system_error("cannot be read"));
  if (S_ISDIR(status.st_mode)) {
    return tl::unexpected(std::string("is a directory; name the trace files in it"));
  }
  return recognise(std::move(file));
}

ByteSourceResult open_memory_source(std::string_view bytes) {
  return recognise(std::make_unique<MemorySource>(bytes));
}

}  // namespace zeroproof
