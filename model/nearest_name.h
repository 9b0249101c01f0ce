#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zeroproof {

// "did you mean 'S2b'?" for the known names closest to `name`, or the list of all when none is
// close.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);

}  // namespace zeroproof
