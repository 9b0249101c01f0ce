#pragma once

#include <cstdint>
#include <optional>

#include "props/train/case_spec.h"

namespace zeroproof::mutation {

// What one rank's engine may hold on its device between two windows: weights, masters, optimizer
// states, the gradients of a window and buckets (docs/spec/performance.md 2). None: a case of which
// more than that would have to be known.
std::optional<std::int64_t> bytes_at_rest(const train::CaseSpec& spec);

}  // namespace zeroproof::mutation
