#include <nlohmann/json.hpp>

#include "props/conform/deepspeed_conform.h"
#include "props/conform/deepspeed_differences.h"

namespace zeroproof {
namespace {

std::vector<KnownDifference> parse_differences(std::string_view text) {
  std::vector<KnownDifference> all;
  const nlohmann::json document = nlohmann::json::parse(text);
  for (const nlohmann::json& entry : document.at("differences"))
    all.push_back({.scenario = entry.at("scenario").get<std::string>(),
                   .stage = entry.at("stage").get<int>(),
                   .dtype = entry.value("dtype", std::string()),
                   .at = entry.at("at").get<std::string>(),
                   .is_surplus = entry.value("surplus", false),
                   .reason = entry.at("reason").get<std::string>()});
  return all;
}

}  // namespace

const std::vector<KnownDifference>& known_differences() {
  static const std::vector<KnownDifference> kAll = parse_differences(deepspeed_differences_json());
  return kAll;
}

}  // namespace zeroproof
