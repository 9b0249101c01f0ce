#include "props/minimize.h"

#include <algorithm>
#include <numeric>

namespace zeroproof {
namespace {

class DeltaDebugging {
 public:
  DeltaDebugging(std::size_t part_count, const std::function<bool(const KeptParts&)>& still_fails,
                 const MinimizeBudget& budget)
      : still_fails_(still_fails), budget_(budget), kept_(part_count) {
    std::iota(kept_.begin(), kept_.end(), std::size_t{0});
  }

  MinimizedParts run() {
    std::size_t chunk_size = kept_.size();
    while (chunk_size > 0 && !has_ended_) {
      // Dropping a late chunk may free an early one, so a size is repeated while it helps.
      while (drop_chunks(chunk_size) && !has_ended_) {
      }
      chunk_size = std::min(chunk_size / 2, kept_.size());
    }
    stats_.is_minimal = !has_ended_;
    ++stats_.tests;
    ZP_CHECK(still_fails_(kept_), "the minimised parts do not fail again");
    return {std::move(kept_), stats_};
  }

 private:
  // From the back, since later parts tend to depend on earlier ones. True when one was dropped.
  bool drop_chunks(std::size_t chunk_size) {
    bool has_dropped = false;
    for (std::size_t end = kept_.size(); end > 0 && !has_ended_;) {
      const std::size_t begin = end - std::min(chunk_size, end);
      has_dropped = drop(begin, end) || has_dropped;
      end = begin;
    }
    return has_dropped;
  }

  bool drop(std::size_t begin, std::size_t end) {
    if (stats_.tests == budget_.tests) {
      has_ended_ = true;
      return false;
    }
    KeptParts fewer(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(begin));
    fewer.insert(fewer.end(), kept_.begin() + static_cast<std::ptrdiff_t>(end), kept_.end());
    ++stats_.tests;
    if (!still_fails_(fewer)) return false;
    ++stats_.steps;
    kept_ = std::move(fewer);
    return true;
  }

  const std::function<bool(const KeptParts&)>& still_fails_;
  const MinimizeBudget& budget_;
  KeptParts kept_;
  MinimizeStats stats_;
  bool has_ended_ = false;
};

}  // namespace

MinimizedParts minimize_parts(std::size_t part_count,
                              const std::function<bool(const KeptParts&)>& still_fails,
                              const MinimizeBudget& budget) {
  return DeltaDebugging(part_count, still_fails, budget).run();
}

std::vector<Choices> simpler_choices(const Choices& choices) {
  std::vector<Choices> simpler;
  const auto add_zeroed = [&](std::size_t begin, std::size_t end) {
    Choices zeroed = choices;
    std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(begin),
              zeroed.begin() + static_cast<std::ptrdiff_t>(end), 0u);
    if (zeroed != choices) simpler.push_back(std::move(zeroed));
  };
  for (std::size_t size = choices.size(); size > 0; size /= 2) {
    for (std::size_t end = choices.size(); end > 0; end -= std::min(size, end)) {
      add_zeroed(end - std::min(size, end), end);
    }
  }
  for (std::size_t place = choices.size(); place-- > 0;) {
    if (choices[place] < 2) continue;
    simpler.push_back(choices);
    --simpler.back()[place];
  }
  return simpler;
}

}  // namespace zeroproof
