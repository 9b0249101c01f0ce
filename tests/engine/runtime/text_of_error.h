#pragma once

#include <exception>
#include <string>

namespace zeroproof {

// What a rank ended with; empty: it did not fail.
inline std::string text_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  }
}

}  // namespace zeroproof
