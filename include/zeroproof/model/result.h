#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace zeroproof {

// The exit code family a user's mistake leads to (docs/reference/output.md lists the codes).
enum class ErrorCode {
  usage,       // 2: a flag, a configuration value or a scenario file is wrong
  unreadable,  // 5: a trace cannot be read or has an unknown major version
  cannot_run,  // 77: this machine or this build lacks what was asked for
  failed,      // 1: another process of the job did not do its part
};

// Something a user can cause. `text` names the file, the line or key, the value, and what to do.
// It is one line: what it quotes of a user's files has '?' for each control character.
struct Error {
  Error() = default;
  Error(ErrorCode of, std::string message);

  ErrorCode code = ErrorCode::usage;
  std::string text;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string text) {
  return tl::unexpected<Error>(Error(code, std::move(text)));
}

}  // namespace zeroproof
