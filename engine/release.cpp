#include "zeroproof/internal/engine/release.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace zeroproof {
namespace {

constexpr std::string_view kPackage = "deepspeed-";

}  // namespace

Result<Release> Release::parse(std::string_view text) {
  const bool has_package = text.substr(0, kPackage.size()) == kPackage;
  const std::string_view numbers = has_package ? text.substr(kPackage.size()) : text;
  std::array<int, 3> parts{};
  const char* at = numbers.data();
  const char* const end = at + numbers.size();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const auto [next, error] = std::from_chars(at, end, parts[part]);
    const bool is_last = part + 1 == parts.size();
    const bool is_followed = is_last ? next == end : next != end && *next == '.';
    if (error != std::errc() || !is_followed || parts[part] < 0)
      return fail(ErrorCode::usage,
                  fmt::format("'{}' is no release of DeepSpeed: write deepspeed-0.19.6", text));
    at = next + (is_last ? 0 : 1);
  }
  return Release{.major = parts[0], .minor = parts[1], .patch = parts[2]};
}

std::string Release::text() const {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace zeroproof
