#pragma once

#include <string>

namespace zeroproof {

// Text of a user's file made fit for a message of one line: '?' for each control character.
inline std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace zeroproof
