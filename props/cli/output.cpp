#include "props/cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace zeroproof {
namespace {

constexpr std::size_t kBufferBytes = 65536;

}  // namespace

void Output::write(std::string_view text) {
  if (error_) return;
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Output::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !error_) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      error_ = "stdout: its reader went away before everything was written";
    } else if (errno != EINTR && errno != EAGAIN) {
      error_ = fmt::format("stdout: cannot be written: {}", std::strerror(errno));
    }
  }
  buffer_.clear();
}

}  // namespace zeroproof
