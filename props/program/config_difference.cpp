#include "props/program/config_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "props/program/value_json.h"

namespace zeroproof::program {
namespace {

using Json = nlohmann::json;

enum class Blocks : std::uint8_t { whole, key_by_key };

// The defaults of their keys depend on other keys of the block.
constexpr std::string_view kWholeBlocks[] = {"optimizer", "scheduler"};

Json difference(const Json& document, const Json& defaults, Blocks blocks) {
  Json left = Json::object();
  for (const auto& [key, value] : document.items()) {
    const auto usual = defaults.find(key);
    if (usual != defaults.end() && *usual == value) continue;
    const bool is_whole =
        blocks == Blocks::whole && std::ranges::find(kWholeBlocks, key) != std::end(kWholeBlocks);
    const bool is_block = !is_whole && value.is_object() && usual != defaults.end();
    left[key] = is_block ? difference(value, *usual, blocks) : value;
  }
  return left;
}

Json difference_of(const ZeroConfig& config, Blocks blocks) {
  static const Json kDefaults = config_json(ZeroConfig());
  return difference(config_json(config), kDefaults, blocks);
}

// Parts of a key's path that do not help a reader.
constexpr std::string_view kSilent[] = {"zero_optimization", "params", "enabled", "device", "type"};

void add_config_words(const Json& value, const std::string& name, std::vector<std::string>& words) {
  if (!value.is_object()) {
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    words.push_back(value == true ? name : fmt::format("{} {}", name, shown));
    return;
  }
  for (const auto& [key, below] : value.items()) {
    const bool is_silent = std::ranges::find(kSilent, key) != std::end(kSilent);
    const std::string_view dot = name.empty() ? "" : ".";
    add_config_words(below, is_silent ? name : fmt::format("{}{}{}", name, dot, key), words);
  }
}

}  // namespace

nlohmann::json config_difference_json(const ZeroConfig& config) {
  return difference_of(config, Blocks::whole);
}

std::string config_difference(const ZeroConfig& config) {
  return config_difference_json(config).dump();
}

std::string config_words(const ZeroConfig& config) {
  Json left = difference_of(config, Blocks::key_by_key);
  if (left.contains("zero_optimization")) left["zero_optimization"].erase("stage");
  std::vector<std::string> words = {fmt::format("stage {}", config.stage)};
  add_config_words(left, "", words);
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace zeroproof::program
