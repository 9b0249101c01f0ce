#include "props/subject/candidates.h"

#include <algorithm>
#include <utility>

#include "props/program/features.h"

namespace zeroproof::subject {

std::vector<Candidate> candidates_of(const SubjectCases& cases, CaseId first, std::uint64_t count,
                                     const FeatureCounts& counts) {
  std::vector<Candidate> candidates;
  for (std::uint64_t i = 0; i < count; ++i) {
    Candidate one{.drawn = cases.at({first.seed, first.number, first.candidate + i}),
                  .features = {}};
    if (one.drawn.lacking) continue;
    one.features = program::features_of(one.drawn.program, one.drawn.productions);
    one.rarity = counts.rarity_of(one.features);
    candidates.push_back(std::move(one));
  }
  if (candidates.empty()) candidates.push_back({.drawn = cases.at(first), .features = {}});
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::rarity);
  return candidates;
}

}  // namespace zeroproof::subject
