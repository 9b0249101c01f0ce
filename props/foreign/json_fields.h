#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace zeroproof {

// Members of foreign JSON objects, which may hold anything.

// Empty when absent or no string.
std::string json_text(const nlohmann::json& object, const char* key);

// An integer of 64 bits, also one written as a string; nullopt when absent or anything else.
std::optional<std::int64_t> json_integer(const nlohmann::json& object, const char* key);

// The integer of a value itself; nullopt when it is none or does not fit.
std::optional<std::int64_t> json_integer(const nlohmann::json& value);

// Ranks in ascending order: a list, or a list written as a string ("[0, 1]"). Empty when it is
// neither, is cut ("[0, 1, ...]"), or names something that cannot be a rank.
std::vector<std::int32_t> json_ranks(const nlohmann::json& object, const char* key);

// Above any real job; a larger rank is a damaged file.
inline constexpr std::int64_t kRankMax = (1 << 20) - 1;

}  // namespace zeroproof
