#pragma once

#include "zeroproof/model/result.h"

namespace zeroproof {

// What the process returns (docs/reference/output.md).
enum class ExitCode {
  held = 0,
  falsified = 1,  // or a mismatch
  usage = 2,
  inconclusive = 3,
  nondeterminism = 4,
  unreadable = 5,
  internal = 6,
  cannot_run = 77,
  time_limit = 124,
  interrupted = 130,
};

constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::unreadable:
      return ExitCode::unreadable;
    case ErrorCode::cannot_run:
      return ExitCode::cannot_run;
    case ErrorCode::failed:
      return ExitCode::falsified;
    case ErrorCode::usage:
      break;
  }
  return ExitCode::usage;
}

}  // namespace zeroproof
