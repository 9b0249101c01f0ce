#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "zeroproof/model/result.h"

namespace zeroproof {

// A release of DeepSpeed, ordered by its three numbers. Plain data.
struct Release {
  int major = 0;
  int minor = 0;
  int patch = 0;

  auto operator<=>(const Release&) const = default;

  // "0.19.6" or "deepspeed-0.19.6"; an error names the text and shows an example.
  static Result<Release> parse(std::string_view text);
  std::string text() const;  // "0.19.6"
};

// First and last release of DeepSpeed that behave in one way; both belong to the range.
struct ReleaseRange {
  Release first;
  Release last;

  bool contains(Release release) const { return first <= release && release <= last; }
};

}  // namespace zeroproof
