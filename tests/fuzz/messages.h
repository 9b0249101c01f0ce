#pragma once

#include <algorithm>
#include <string_view>

namespace zeroproof {

// The messages that a fuzzer's bytes are: each a byte of length and so many bytes, or what is left.
class MessageBytes {
 public:
  explicit MessageBytes(std::string_view bytes) : bytes_(bytes) {}

  bool is_over() const { return bytes_.empty(); }
  std::string_view next() {
    const auto length = std::size_t{static_cast<unsigned char>(bytes_.front())};
    bytes_.remove_prefix(1);
    const std::string_view message = bytes_.substr(0, length);
    bytes_.remove_prefix(std::min(length, bytes_.size()));
    return message;
  }

 private:
  std::string_view bytes_;
};

}  // namespace zeroproof
