#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zeroproof::subject {

// In how many programs each feature was (props/program/features.h).
class FeatureCounts {
 public:
  using ByName = std::map<std::string, std::uint64_t>;

  FeatureCounts() = default;
  explicit FeatureCounts(ByName counts) : counts_(std::move(counts)) {}

  void add(const std::vector<std::string>& features);
  void add(const FeatureCounts& others);

  // The mean of 1 / (1 + count): 1 of a program whose features are all new, near 0 of one whose
  // features are all frequent. A mean, so that a long program is no better than a short one.
  double rarity_of(const std::vector<std::string>& features) const;

  // Different features.
  std::size_t size() const { return counts_.size(); }
  const ByName& by_name() const { return counts_; }

 private:
  ByName counts_;
};

}  // namespace zeroproof::subject
