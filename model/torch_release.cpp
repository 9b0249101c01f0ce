#include "zeroproof/internal/model/torch_release.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "model/check.h"

namespace zeroproof {
namespace {

// As the wheels of 2.11 to 2.15 do it.
constexpr std::array<TorchChangeRow, 2> kChanges = {{
    {TorchChange::checkpoint_inputs_without_node, 2, 12},
    {TorchChange::linear_unflattens_by_unsafe_view, 2, 15},
}};

// The number that `text` begins with is cut off it; false when there is none.
bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

Result<TorchRelease> TorchRelease::parse(std::string_view text) {
  std::string_view rest = text;
  int major = 0;
  int minor = 0;
  const bool is_release = take_number(rest, major) && rest.starts_with('.') &&
                          (rest.remove_prefix(1), take_number(rest, minor)) &&
                          (rest.empty() || rest.front() == '.');
  if (is_release) return TorchRelease(major, minor);
  return fail(ErrorCode::unreadable,
              fmt::format("'{}' is no release of PyTorch; one reads 2.15.0", text));
}

bool TorchRelease::has(TorchChange change) const {
  const auto row = std::ranges::find(kChanges, change, &TorchChangeRow::change);
  ZP_CHECK(row != kChanges.end(), "a change of PyTorch without a release");
  return std::pair(major_, minor_) >= std::pair(row->major, row->minor);
}

std::span<const TorchChangeRow> torch_changes() {
  return kChanges;
}

}  // namespace zeroproof
