#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/subject/feature_counts.h"
#include "props/subject/subject_cases.h"

namespace zeroproof::subject {

inline constexpr std::uint64_t kUsualCandidates = 4;

struct Candidate {
  DrawnCase drawn;
  std::vector<std::string>
      features;         // props/program/features.h; empty where the subject cannot do it
  double rarity = 0.0;  // FeatureCounts::rarity_of
};

// The candidates of one case that the subject can do, the one with the rarest features first; equal
// ones in their order. Where the subject cannot do any, the first candidate alone. A pure
// function of its arguments.
std::vector<Candidate> candidates_of(const SubjectCases& cases, CaseId first, std::uint64_t count,
                                     const FeatureCounts& counts);

}  // namespace zeroproof::subject
