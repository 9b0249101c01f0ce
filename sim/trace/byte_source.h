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

// A regular file, pipe or device; gzip is recognised by its first bytes and inflated.
ByteSourceResult open_file_source(const std::string& path);

// Bytes that outlive the source, plain or gzip.
ByteSourceResult open_memory_source(std::string_view bytes);

}  // namespace zeroproof
