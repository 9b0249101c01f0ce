#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace zeroproof {

// XXH3-128 as 32 hexadecimal digits, the same on every machine. Finds damage, not forgery.
std::string checksum_of(std::string_view bytes);

// The same of bytes that come in pieces.
class RunningChecksum {
 public:
  RunningChecksum();
  ~RunningChecksum();
  RunningChecksum(RunningChecksum&& other) noexcept;
  RunningChecksum& operator=(RunningChecksum&& other) noexcept;

  void add(std::string_view bytes);
  std::string text() const;  // of what was added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// `line` (which has no line break) and a second line with its checksum.
std::string sealed(std::string_view line);
// The first of the two lines; false if any byte of `text` is not as sealed() made it.
bool unseal(std::string_view text, std::string_view& line);

}  // namespace zeroproof
