#include "props/program/source.h"

#include <numeric>
#include <utility>

#include "model/check.h"
#include "model/splitmix64.h"

namespace zeroproof::program {
namespace {

// The index in `weights` that `point`, below their sum, falls on.
std::size_t index_at(std::span<const std::uint32_t> weights, std::uint64_t point) {
  std::size_t index = 0;
  while (point >= weights[index]) point -= weights[index++];
  return index;
}

// A replayed index may have lost its weight: the next below it that has one, or the first of all.
std::size_t with_weight(std::span<const std::uint32_t> weights, std::size_t wanted) {
  std::size_t index = wanted;
  while (index > 0 && weights[index] == 0) --index;
  while (weights[index] == 0) ++index;
  return index;
}

}  // namespace

Source::Source(std::uint64_t seed) : state_(seed) {}

Source::Source(std::vector<std::uint32_t> values) : is_replay_(true), values_(std::move(values)) {}

std::uint32_t Source::replayed() const {
  const std::size_t at = choices_.list.size();
  return at < values_.size() ? values_[at] : 0;
}

std::uint32_t Source::record(std::size_t value, std::size_t bound) {
  const auto chosen = static_cast<std::uint32_t>(value);
  choices_.list.push_back({chosen, static_cast<std::uint32_t>(bound)});
  return chosen;
}

std::uint32_t Source::below(std::uint32_t bound) {
  if (bound <= 1) return 0;
  const std::uint64_t drawn = is_replay_ ? replayed() : next_splitmix64(state_);
  return record(drawn % bound, bound);
}

int Source::between(int least, int most) {
  ZP_CHECK(least <= most, "an empty range");
  const auto width = static_cast<std::int64_t>(most) - least + 1;
  return least + static_cast<int>(below(static_cast<std::uint32_t>(width)));
}

// Recorded as 0 or 1, whatever `n` is: true has one form, the smallest.
bool Source::one_in(std::uint32_t n) {
  ZP_CHECK(n > 0, "once in no draws");
  if (n == 1) return true;
  const bool hit = is_replay_ ? replayed() % 2 == 1 : next_splitmix64(state_) % n == 1;
  return record(hit ? 1 : 0, 2) == 1;
}

// The index is recorded, not the point it was drawn by: it stays true when weights change.
std::size_t Source::weighted(std::span<const std::uint32_t> weights) {
  const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  ZP_CHECK(sum > 0, "one weight must be above zero");
  if (weights.size() == 1) return 0;
  const std::size_t index = is_replay_ ? with_weight(weights, replayed() % weights.size())
                                       : index_at(weights, next_splitmix64(state_) % sum);
  return record(index, weights.size());
}

Source::Scope::Scope(Source& source, std::string_view label)
    : source_(source), span_(source.choices_.spans.size()) {
  const std::size_t begin = source.choices_.list.size();
  source.choices_.spans.push_back({begin, begin, label});
}

Source::Scope::~Scope() {
  source_.choices_.spans[span_].end = source_.choices_.list.size();
}

}  // namespace zeroproof::program
