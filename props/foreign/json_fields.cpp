#include "props/foreign/json_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string json_text(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::optional<std::int64_t> json_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

std::optional<std::int64_t> json_integer(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return std::nullopt;
  if (!at->is_string()) return json_integer(*at);
  const auto& text = at->get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

std::vector<std::int32_t> json_ranks(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return {};
  const Json list =
      at->is_string() ? Json::parse(at->get_ref<const std::string&>(), nullptr, false) : *at;
  if (!list.is_array()) return {};
  std::vector<std::int32_t> ranks;
  for (const Json& one : list) {
    const auto rank = json_integer(one);
    if (!rank || *rank < 0 || *rank > kRankMax) return {};
    ranks.push_back(static_cast<std::int32_t>(*rank));
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace zeroproof
