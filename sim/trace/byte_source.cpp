#include "sim/trace/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "sim/trace/gzip.h"

namespace zeroproof {
namespace {

constexpr int kPollMilliseconds = 200;

bool (*g_should_stop)() = nullptr;  // set before any other thread starts

std::string system_error(std::string_view what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

class FileSource final : public ByteSource {
 public:
  FileSource(int descriptor, bool is_regular) : descriptor_(descriptor), is_regular_(is_regular) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  tl::expected<std::size_t, std::string> read(std::span<char> out) override {
    while (!is_read_stopped()) {
      if (!is_regular_ && !is_ready()) continue;
      const ssize_t got = ::read(descriptor_, out.data(), out.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR && errno != EAGAIN) return tl::unexpected(system_error("cannot be read"));
    }
    return tl::unexpected(std::string("reading was interrupted"));
  }

 private:
  // A signal between the question and a blocking read would be missed, so a pipe is waited for in
  // short turns.
  bool is_ready() const {
    pollfd waited = {.fd = descriptor_, .events = POLLIN, .revents = 0};
    return ::poll(&waited, 1, kPollMilliseconds) > 0;
  }

  int descriptor_;
  bool is_regular_;
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

  bool is_cut_short() const override { return rest_->is_cut_short(); }

 private:
  std::string prefix_;
  std::size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

// Pipes and devices by the path that named them: the source that was peeked into, null once it was
// handed out.
std::map<std::string, std::unique_ptr<ByteSource>>& opened_pipes() {
  static std::map<std::string, std::unique_ptr<ByteSource>> pipes;
  return pipes;
}

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

tl::expected<std::string, std::string> read_front(ByteSource& source, std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t size = 0;
  while (size < count) {
    const auto got = source.read({bytes.data() + size, count - size});
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) break;
    size += *got;
  }
  bytes.resize(size);
  return bytes;
}

// O_NONBLOCK: a FIFO without a writer is waited for in `read`, which can be interrupted.
ByteSourceResult open_anew(const std::string& path, bool& is_regular) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return tl::unexpected(system_error("cannot be opened"));
  struct stat status = {};
  is_regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  auto file = std::make_unique<FileSource>(descriptor, is_regular);
  if (S_ISDIR(status.st_mode))
    return tl::unexpected(std::string("is a directory; name the trace files in it"));
  return recognise(std::move(file));
}

}  // namespace

ByteSourceResult open_file_source(const std::string& path) {
  const auto known = opened_pipes().find(path);
  if (known != opened_pipes().end()) {
    if (known->second) return std::move(known->second);
    return tl::unexpected(
        std::string("is a pipe or device and was read already; write it to a file first"));
  }
  bool is_regular = true;
  auto source = open_anew(path, is_regular);
  if (!is_regular && source) opened_pipes()[path] = nullptr;
  return source;
}

ByteSourceResult open_memory_source(std::string_view bytes) {
  return recognise(std::make_unique<MemorySource>(bytes));
}

tl::expected<std::string, std::string> peek_file(const std::string& path, std::size_t count) {
  const bool was_opened = opened_pipes().contains(path);
  auto source = open_file_source(path);
  if (!source) return tl::unexpected(source.error());
  auto bytes = read_front(**source, count);
  const auto pipe = opened_pipes().find(path);
  const bool is_pipe = was_opened || pipe != opened_pipes().end();
  if (is_pipe && bytes)
    opened_pipes()[path] = std::make_unique<PrefixedSource>(*bytes, std::move(*source));
  return bytes;
}

void set_read_stop(bool (*should_stop)()) {
  g_should_stop = should_stop;
}

bool is_read_stopped() {
  return g_should_stop != nullptr && g_should_stop();
}

}  // namespace zeroproof
