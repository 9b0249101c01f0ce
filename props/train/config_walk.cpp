#include "props/train/config_walk.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/check.h"
#include "props/train/config_document.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::train {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

constexpr std::int64_t kLarge = 1'000'000'000;

// A document that says this, and the optimizer.
std::string saying(const Json& whole, const Pointer& key, const Json& value) {
  Json document = {{"optimizer", whole["optimizer"]}};
  document[key] = value;
  return document.dump();
}

// Of no type that DeepSpeed would convert.
std::vector<Json> wrong_values(const Json& value) {
  if (value.is_boolean()) return {2, "maybe", Json::array(), nullptr};
  if (value.is_number_integer()) return {value.get<double>() + 0.5, "1.5", true, Json::array({1})};
  return {"half", true, Json::array({0.5}), nullptr};
}

Json another_value(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    return number > kLarge ? number / 2 : number + 2;
  }
  return value.get<double>() / 2.0 + 0.25;
}

bool reads_as(const std::string& document, const Json& whole) {
  const auto parsed = parse_ds_config(document, "generated");
  return parsed && Json::parse(config_document(parsed->config)) == whole;
}

bool is_refused(const std::string& document, const std::string& key) {
  const auto parsed = parse_ds_config(document, "generated");
  return !parsed && parsed.error().text.find(key) != std::string::npos;
}

bool holds_for(const Json& whole, const std::string& name) {
  const Pointer key(name);
  const Json& value = whole[key];
  Json other = whole;
  other[key] = another_value(value);
  if (!reads_as(saying(whole, key, other[key]), other)) return false;
  if (!reads_as(saying(whole, key, "auto"), whole)) return false;
  for (const Json& wrong : wrong_values(value))
    if (!is_refused(saying(whole, key, wrong), name)) return false;
  return true;
}

// A class of PyTorch has another decay, where none is given; Nesterov's rule needs a momentum.
bool is_plain(const std::string& name, const Json& value) {
  return (value.is_boolean() || value.is_number()) && !name.ends_with("/torch_adam") &&
         !name.ends_with("/nesterov") && name.find("/betas/") == std::string::npos;
}

Json whole_of(const std::string& optimizer) {
  const auto parsed = parse_ds_config(R"({"optimizer":{"type":")" + optimizer + R"("}})", "given");
  ZP_CHECK(parsed, "an optimizer that is none");
  return Json::parse(config_document(parsed->config));
}

}  // namespace

bool holds_for_each_key(std::size_t part, std::size_t parts) {
  for (const char* const optimizer : {"Adam", "AdamW", "SGD"}) {
    const Json whole = whole_of(optimizer);
    const Json keys = whole.flatten();
    std::size_t at = 0;
    for (const auto& [name, value] : keys.items())
      if (is_plain(name, value) && at++ % parts == part && !holds_for(whole, name)) return false;
  }
  return true;
}

}  // namespace zeroproof::train
