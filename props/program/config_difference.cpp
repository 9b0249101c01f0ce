#include "props/program/config_difference.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "props/train/config_document.h"

namespace zeroproof::program {
namespace {

using Json = nlohmann::json;

// The defaults of their keys depend on other keys of the block.
constexpr std::string_view kWholeBlocks[] = {"optimizer", "scheduler"};

Json difference(const Json& document, const Json& defaults) {
  Json left = Json::object();
  for (const auto& [key, value] : document.items()) {
    const auto usual = defaults.find(key);
    if (usual != defaults.end() && *usual == value) continue;
    const bool is_whole = std::ranges::find(kWholeBlocks, key) != std::end(kWholeBlocks);
    const bool is_block = !is_whole && value.is_object() && usual != defaults.end();
    left[key] = is_block ? difference(value, *usual) : value;
  }
  return left;
}

}  // namespace

std::string config_difference(const ZeroConfig& config) {
  const Json defaults = Json::parse(train::config_document(ZeroConfig()));
  return difference(Json::parse(train::config_document(config)), defaults).dump();
}

}  // namespace zeroproof::program
