#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zeroproof {

// The result stream of a verb. Buffers; a reader that went away or a full disk is remembered
// instead of ending the process, so that the verb can still write its files. Not thread-safe.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  void write(std::string_view text);
  void flush();

  // Why not everything was written, as one line.
  const std::optional<std::string>& error() const { return error_; }

 private:
  int descriptor_;
  std::string buffer_;
  std::optional<std::string> error_;
};

}  // namespace zeroproof
