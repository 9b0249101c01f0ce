#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace zeroproof {

// A stream of bytes. Errors are one sentence without the name of the file. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills the front of `out` and returns how much; 0 only at the end. `out` is not empty.
  virtual tl::expected<std::size_t, std::string> read(std::span<char> out) = 0;

  // At the end: the stream stopped in the middle (gzip without its trailer).
  virtual bool is_cut_short() const { return false; }
};

using ByteSourceResult = tl::expected<std::unique_ptr<ByteSource>, std::string>;

// A regular file, pipe or device; gzip is recognised by its first bytes and inflated. A pipe or
// device can be opened once; a second time is an error that says so.
ByteSourceResult open_file_source(const std::string& path);

// Bytes that outlive the source, plain or gzip.
ByteSourceResult open_memory_source(std::string_view bytes);

// The first `count` bytes, or all of a shorter file, inflated. The bytes of a pipe or device are
// not lost: the next open_file_source of that path begins with them.
tl::expected<std::string, std::string> peek_file(const std::string& path, std::size_t count);

// From here on every source asks `should_stop` between pieces, and several times a second while a
// pipe gives no byte, and ends with an error once it is true. For the flag of a signal handler; any
// reading thread may call it, so set it before they start. Null (the default): never.
void set_read_stop(bool (*should_stop)());

// What `should_stop` says now.
bool is_read_stopped();

}  // namespace zeroproof
