#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/trace/byte_source.h"

namespace zeroproof {

bool starts_like_gzip(std::string_view bytes);

// Inflates `compressed`, one gzip member after the other.
std::unique_ptr<ByteSource> make_gzip_source(std::unique_ptr<ByteSource> compressed);

// Inflates members as their bytes come, for a file that grows. Not thread-safe.
class GzipInflater {
 public:
  GzipInflater();
  ~GzipInflater();

  // Appends to `out` what the bytes give. False: they are damaged, and so is all that follows.
  bool add(std::string_view bytes, std::string& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Deflates into one gzip member without name or time, so that equal input gives equal bytes.
// Not thread-safe.
class GzipCompressor {
 public:
  GzipCompressor();
  ~GzipCompressor();

  // Append the compressed bytes that became available to `out`.
  void add(std::string_view bytes, std::string& out);
  void finish(std::string& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
