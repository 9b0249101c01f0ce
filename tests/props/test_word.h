#pragma once

#include <cctype>
#include <string>

namespace zeroproof {

// As a test's name may be: "S2_deepspeed_0_18_3".
inline std::string test_word(std::string text) {
  for (char& byte : text)
    if (std::isalnum(static_cast<unsigned char>(byte)) == 0) byte = '_';
  return text;
}

}  // namespace zeroproof
