#include "props/subject/feature_counts.h"

namespace zeroproof::subject {

void FeatureCounts::add(const std::vector<std::string>& features) {
  for (const std::string& feature : features) ++counts_[feature];
}

void FeatureCounts::add(const FeatureCounts& others) {
  for (const auto& [feature, count] : others.counts_) counts_[feature] += count;
}

double FeatureCounts::rarity_of(const std::vector<std::string>& features) const {
  if (features.empty()) return 0.0;
  double sum = 0.0;
  for (const std::string& feature : features) {
    const auto at = counts_.find(feature);
    sum += 1.0 / (1.0 + (at == counts_.end() ? 0.0 : static_cast<double>(at->second)));
  }
  return sum / static_cast<double>(features.size());
}

}  // namespace zeroproof::subject
