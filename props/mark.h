#pragma once

#include <optional>
#include <string_view>

namespace zeroproof {

// Marks that say a number: "loss_scale:65536" for the word "loss_scale"; a label of another word,
// or without a number, gives nullopt.
std::optional<double> mark_number(std::string_view label, std::string_view word);

}  // namespace zeroproof
