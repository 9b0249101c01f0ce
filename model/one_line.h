#pragma once

#include <string>
#include <utility>

#include "zeroproof/model/result.h"

namespace zeroproof {

// Text of a user's file made fit for an error, which is one line: '?' for each control character.
inline std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

// An error that quotes such text.
inline tl::unexpected<Error> fail_in_one_line(ErrorCode code, std::string text) {
  return fail(code, one_line(std::move(text)));
}

}  // namespace zeroproof
