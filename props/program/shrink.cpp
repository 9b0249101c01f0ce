#include "props/program/shrink.h"

#include <algorithm>
#include <set>
#include <utility>

#include "props/program/span_list.h"

namespace zeroproof::program {
namespace {

using Values = std::vector<std::uint32_t>;

bool is_simpler_list(const Values& a, const Values& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

Values part_of(const Values& values, const Range& range) {
  const auto begin = values.begin();
  return {begin + static_cast<std::ptrdiff_t>(range.begin),
          begin + static_cast<std::ptrdiff_t>(range.end)};
}

Values with_part(const Values& values, const Range& range, const Values& part) {
  Values changed = part_of(values, {0, range.begin});
  changed.insert(changed.end(), part.begin(), part.end());
  const Values rest = part_of(values, {range.end, values.size()});
  changed.insert(changed.end(), rest.begin(), rest.end());
  return changed;
}

// What a replay reads after the end is 0, too.
Values without_zeros_at_end(Values values) {
  while (!values.empty() && values.back() == 0) values.pop_back();
  return values;
}

class Shrinker {
 public:
  Shrinker(const Choices& start, const StillFails& still_fails, std::size_t max_runs)
      : still_fails_(still_fails), max_runs_(max_runs) {
    take(start);
  }

  Shrunk shrunk() {
    Values before;
    do {
      before = values_;
      cut_tail();
      delete_ranges();
      delete_counted();
      replace_spans();
      zero_spans();
      lower_choices();
      lower_equal_choices();
      sort_siblings();
    } while (values_ != before);
    return {best_, runs_};
  }

 private:
  // Whether it fails and is simpler than the best, which it replaces then.
  bool attempt(Values candidate) {
    candidate = without_zeros_at_end(std::move(candidate));
    if (runs_ == max_runs_ || !tried_.insert(candidate).second) return false;
    ++runs_;
    std::optional<Choices> used = still_fails_(candidate);
    if (!used || !is_simpler(*used, best_)) return false;
    take(std::move(*used));
    return true;
  }

  void take(Choices simpler) {
    best_ = std::move(simpler);
    values_ = values_of(best_);
    tried_.insert(without_zeros_at_end(values_));
  }

  // The smallest `value` above `least` for which attempt_with(value) succeeds, by bisection.
  template <class AttemptWith>
  void bisect(std::size_t least, std::size_t value, const AttemptWith& attempt_with) {
    while (value - least > 1) {
      const std::size_t middle = least + (value - least) / 2;
      (attempt_with(middle) ? value : least) = middle;
    }
  }

  // Everything after the first choices becomes 0.
  void cut_tail() {
    const auto cut_at = [&](std::size_t size) {
      return attempt(part_of(values_, {0, std::min(size, values_.size())}));
    };
    if (!cut_at(0)) bisect(0, without_zeros_at_end(values_).size(), cut_at);
  }

  // After a deletion it goes on with ranges of the same size: those that are larger stay.
  void delete_ranges() {
    std::vector<Range> ranges = deletable_ranges(best_);
    for (std::size_t at = 0; at < ranges.size(); ++at) {
      const Range range = ranges[at];
      if (!attempt(with_part(values_, range, {}))) continue;
      ranges = deletable_ranges(best_);
      const auto fits = [&](const Range& left) { return left.size() <= range.size(); };
      at = static_cast<std::size_t>(std::ranges::find_if(ranges, fits) - ranges.begin()) - 1;
    }
  }

  // Siblings whose number is the choice before them.
  void delete_counted() {
    std::vector<SiblingRun> runs = sibling_runs(best_);
    for (std::size_t at = 0; at < runs.size(); ++at) {
      if (!delete_counted(runs[at])) continue;
      runs = sibling_runs(best_);
      at = static_cast<std::size_t>(-1);
    }
  }

  bool delete_counted(const SiblingRun& run) {
    if (run.front().begin == 0) return false;
    const std::size_t counter = run.front().begin - 1;
    for (std::size_t count = run.size(); count > 0; count /= 2) {
      if (values_[counter] < count) continue;
      for (std::size_t first = 0; first + count <= run.size(); first += count) {
        const std::size_t after = first + count;
        const std::size_t end = after < run.size() ? run[after].begin : run.back().end;
        Values changed = with_part(values_, {run[first].begin, end}, {});
        changed[counter] -= static_cast<std::uint32_t>(count);
        if (attempt(std::move(changed))) return true;
      }
    }
    return false;
  }

  void replace_spans() {
    for (std::size_t at = 0; at < best_.spans.size(); ++at) {
      while (at < best_.spans.size() && replace_span(best_.spans[at])) {
      }
    }
  }

  // By the simplest span of its label, or by one inside it.
  bool replace_span(const Span span) {
    const Range range{span.begin, span.end};
    const Values own = part_of(values_, range);
    std::set<std::pair<std::size_t, Values>> inside;
    std::set<std::pair<std::size_t, Values>> elsewhere;
    for (const Span& other : best_.spans) {
      Values part = part_of(values_, {other.begin, other.end});
      if (other.label != span.label || !is_simpler_list(part, own)) continue;
      const bool is_inside = other.begin >= span.begin && other.end <= span.end;
      (is_inside ? inside : elsewhere).emplace(part.size(), part);
    }
    if (!elsewhere.empty()) inside.insert(*elsewhere.begin());
    const auto attempt_part = [&](const auto& part) {
      return attempt(with_part(values_, range, part.second));
    };
    return std::ranges::any_of(inside, attempt_part);
  }

  void zero_spans() {
    for (std::size_t at = 0; at < best_.spans.size(); ++at) {
      const Range range{best_.spans[at].begin, best_.spans[at].end};
      attempt(with_part(values_, range, Values(range.size(), 0)));
    }
  }

  void lower_choices() {
    for (std::size_t at = 0; at < values_.size(); ++at) {
      const auto lower_to = [&](std::size_t value) {
        if (at >= values_.size()) return false;
        Values changed = values_;
        changed[at] = static_cast<std::uint32_t>(value);
        return attempt(std::move(changed));
      };
      if (values_[at] > 0 && !lower_to(0)) bisect(0, values_[at], lower_to);
    }
  }

  // Two references to one thing, say, which only change together.
  void lower_equal_choices() {
    std::set<std::uint32_t> distinct(values_.begin(), values_.end());
    for (const std::uint32_t old : distinct) {
      const auto lower_to = [&](std::size_t value) {
        Values changed = values_;
        std::ranges::replace(changed, old, static_cast<std::uint32_t>(value));
        return attempt(std::move(changed));
      };
      if (old > 0 && std::ranges::count(values_, old) > 1 && !lower_to(0)) bisect(0, old, lower_to);
    }
  }

  void sort_siblings() {
    std::vector<SiblingRun> runs = sibling_runs(best_);
    for (std::size_t at = 0; at < runs.size(); ++at) {
      if (!swap_two(runs[at])) continue;
      runs = sibling_runs(best_);
      at = static_cast<std::size_t>(-1);
    }
  }

  bool swap_two(const SiblingRun& run) {
    for (std::size_t second = 1; second < run.size(); ++second) {
      const Range& a = run[second - 1];
      const Range& b = run[second];
      Values swapped = part_of(values_, b);
      const Values between = part_of(values_, {a.end, b.begin});
      const Values last = part_of(values_, a);
      swapped.insert(swapped.end(), between.begin(), between.end());
      swapped.insert(swapped.end(), last.begin(), last.end());
      Values changed = with_part(values_, {a.begin, b.end}, swapped);
      if (changed < values_ && attempt(std::move(changed))) return true;
    }
    return false;
  }

  Choices best_;
  Values values_;  // of best_
  const StillFails& still_fails_;
  std::size_t max_runs_;
  std::size_t runs_ = 0;
  std::set<Values> tried_;
};

}  // namespace

std::vector<std::uint32_t> values_of(const Choices& choices) {
  Values values;
  for (const Choice& choice : choices.list) values.push_back(choice.value);
  return values;
}

bool is_simpler(const Choices& a, const Choices& b) {
  return is_simpler_list(values_of(a), values_of(b));
}

Shrunk shrink(const Choices& start, const StillFails& still_fails, std::size_t max_runs) {
  return Shrinker(start, still_fails, max_runs).shrunk();
}

}  // namespace zeroproof::program
