#include "props/program/span_list.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace zeroproof::program {
namespace {

constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

Range range_of(const Span& span) {
  return {span.begin, span.end};
}

// `count` siblings from `first` on, once with the choices after them and once with those before.
void add_part(const SiblingRun& run, std::size_t first, std::size_t count,
              std::vector<Range>& ranges) {
  const std::size_t after = first + count;
  ranges.push_back({run[first].begin, after < run.size() ? run[after].begin : run.back().end});
  if (first > 0) ranges.push_back({run[first - 1].end, run[after - 1].end});
}

}  // namespace

std::vector<SiblingRun> sibling_runs(const Choices& choices) {
  std::vector<SiblingRun> runs;
  // The run of a parent that its next child may continue.
  std::map<std::size_t, std::pair<std::string_view, std::size_t>> open_runs;
  std::vector<std::size_t> parents;
  for (std::size_t at = 0; at < choices.spans.size(); ++at) {
    const Span& span = choices.spans[at];
    if (span.begin == span.end) continue;
    while (!parents.empty() && choices.spans[parents.back()].end <= span.begin) parents.pop_back();
    auto& [label, run] = open_runs[parents.empty() ? kNoParent : parents.back()];
    if (label != span.label) {
      label = span.label;
      run = runs.size();
      runs.emplace_back();
    }
    runs[run].push_back(range_of(span));
    parents.push_back(at);
  }
  return runs;
}

std::vector<Range> deletable_ranges(const Choices& choices) {
  std::vector<Range> ranges;
  for (const Span& span : choices.spans) ranges.push_back(range_of(span));
  for (const SiblingRun& run : sibling_runs(choices)) {
    for (std::size_t count = run.size(); count > 0; count /= 2) {
      for (std::size_t first = 0; first + count <= run.size(); first += count) {
        add_part(run, first, count, ranges);
      }
    }
  }
  const auto order = [](const Range& a, const Range& b) {
    return std::tuple(b.size(), b.begin) < std::tuple(a.size(), a.begin);
  };
  std::ranges::sort(ranges, order);
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  std::erase_if(ranges, [](const Range& range) { return range.size() == 0; });
  return ranges;
}

}  // namespace zeroproof::program
