#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/model/dtype.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct Recording;

enum class ConformStatus {
  agreed,
  order_mismatch,
  collective_mismatch,  // of a training run: another operation, size or place
  value_mismatch,
  explained,   // differs as it has to: deepspeed_differences.json says why
  unknown,     // no port of the program yet
  incomplete,  // the trace of a rank is missing or damaged
};

std::string_view conform_status_name(ConformStatus status);

struct ConformOutcome {
  std::string path;
  std::string program;  // of the trace's header; of a training run also what it ran on
  ConformStatus status = ConformStatus::unknown;
  std::string detail;       // the first difference; empty when there is none
  std::size_t tokens = 0;   // compared
  std::size_t tensors = 0;  // compared
  bool is_race = false;     // several threads could go on at some point (rule Q6)
  std::size_t orders_tried = 0;
  double worst = 0.0;  // largest deviation, in units of max(1, largest absolute value)
};

struct ConformOptions {
  DType dtype = DType::float64;
  double tolerance = 1e-12;  // of a value, in the same units
};

struct ConformReport {
  std::vector<ConformOutcome> outcomes;
  std::size_t count(ConformStatus status) const;
};

// Runs our port of the trace's program with the recorded parameters and inputs. Order tokens, and
// the names of executed nodes where they were recorded, have to be equal; gradients, outputs,
// parameters and optimizer state equal within the tolerance, and none may be missing.
// Code unreadable for a file that is no complete trace.
Result<ConformOutcome> conform(const std::string& path, const ConformOptions& options);

// The same for a recording that was read from `path`. Throws MissingTensor when the program
// starts from a tensor that it lacks.
ConformOutcome conform(const Recording& recorded, const std::string& path,
                       const ConformOptions& options);

}  // namespace zeroproof
