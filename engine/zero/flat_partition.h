#pragma once

#include <cstdint>
#include <vector>

namespace zeroproof {

// Elements [begin, begin + elements) of a flat buffer.
struct FlatRange {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
  std::int64_t end() const { return begin + elements; }
  friend bool operator==(const FlatRange&, const FlatRange&) = default;
};

// The common part; no elements when there is none.
FlatRange intersect(const FlatRange& a, const FlatRange& b);

// How the parameters of one group lie in one flat buffer that `ranks` share equally: one after the
// other, then zeros up to a multiple of `alignment` times ranks (docs/spec/zero.md 2.15, P50). Pure
// arithmetic.
class FlatPartition {
 public:
  FlatPartition(const std::vector<std::int64_t>& sizes, int ranks, std::int64_t alignment);

  std::int64_t elements() const { return elements_; }  // with padding
  std::int64_t padding() const { return padding_; }
  int ranks() const { return ranks_; }
  FlatRange slice(int rank) const;
  FlatRange parameter(std::size_t index) const { return parameters_[index]; }
  // What of a parameter the rank owns, in the flat buffer.
  FlatRange owned(std::size_t index, int rank) const;

 private:
  std::vector<FlatRange> parameters_;
  std::int64_t elements_ = 0;
  std::int64_t padding_ = 0;
  int ranks_ = 1;
};

}  // namespace zeroproof
