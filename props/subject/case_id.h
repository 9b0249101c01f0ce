#pragma once

#include <cstdint>

namespace zeroproof::subject {

// Case `number` of a seed has candidates, of which a hunt runs one (props/subject/candidates.h).
struct CaseId {
  std::uint64_t seed = 0;
  std::uint64_t number = 0;
  std::uint64_t candidate = 0;

  friend auto operator<=>(const CaseId&, const CaseId&) = default;
};

}  // namespace zeroproof::subject
