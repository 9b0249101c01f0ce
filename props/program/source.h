#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace zeroproof::program {

// One choice of a case: a number below `bound`, 0 the simplest.
struct Choice {
  std::uint32_t value = 0;
  std::uint32_t bound = 1;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// Choices that belong together, so that shrinking can delete them or put another span of the same
// label in their place. Spans nest.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view label;  // static
};

// A whole case: world, configuration, program, data, and after them the schedule.
struct Choices {
  std::vector<Choice> list;
  std::vector<Span> spans;  // in the order of their begins; a parent before its children
};

// The only door through which a case is drawn: fresh from a seed, or again from choices. The
// drawing code takes what it gets: a missing choice is 0, one that is too large its remainder.
// Everything drawn is recorded. Not thread-safe.
class Source {
 public:
  explicit Source(std::uint64_t seed);
  // Replays `values`; after their end every choice is 0.
  explicit Source(std::vector<std::uint32_t> values);

  std::uint32_t below(std::uint32_t bound);  // 0 where bound is 0 or 1, which is no choice
  int between(int least, int most);          // inclusive; the least is the simplest
  bool one_in(std::uint32_t n);              // true once in n draws; false is the simplest
  // An index of `weights`, as often as its weight says; 0 is the simplest. Not all are zero.
  std::size_t weighted(std::span<const std::uint32_t> weights);
  template <class T>
  const T& of(std::span<const T> values) {
    return values[below(static_cast<std::uint32_t>(values.size()))];
  }

  // What is drawn while it lives is a span.
  class Scope {
   public:
    Scope(Source& source, std::string_view label);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Source& source_;
    std::size_t span_;
  };

  const Choices& choices() const { return choices_; }

 private:
  std::uint32_t replayed() const;  // the value in the place of the next choice
  std::uint32_t record(std::size_t value, std::size_t bound);

  std::uint64_t state_ = 0;  // of splitmix64
  bool is_replay_ = false;
  std::vector<std::uint32_t> values_;
  Choices choices_;
};

}  // namespace zeroproof::program
