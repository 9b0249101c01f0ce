#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/check.h"
#include "props/conform/deepspeed_changes.h"
#include "props/conform/deepspeed_conform.h"
#include "props/conform/deepspeed_differences.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

// The names of deepspeed_differences.json.
constexpr std::array kChangeNames = {
    std::pair(DeepspeedChange::tracks_graph_of_backward,
              std::string_view("tracks_graph_of_backward")),
    std::pair(DeepspeedChange::clips_by_default, std::string_view("clips_by_default")),
    std::pair(DeepspeedChange::replaces_linear_of_any_model,
              std::string_view("replaces_linear_of_any_model")),
};

Release release_of(const Json& entry, const char* key, Release otherwise) {
  if (!entry.contains(key)) return otherwise;
  const auto release = Release::parse(entry.at(key).get<std::string>());
  ZP_CHECK(release, "deepspeed_differences.json names a release");
  return *release;
}

// One value or several; none where the key is missing.
template <class Value>
std::vector<Value> all_of(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end()) return {};
  if (found->is_array()) return found->get<std::vector<Value>>();
  return {found->get<Value>()};
}

struct Differences {
  Release checkout;                                      // what a checkout behaves like
  std::vector<std::pair<std::string, Release>> changes;  // name, first release
  std::vector<KnownDifference> known;
};

Differences parse_differences(std::string_view text) {
  constexpr Release kAny = {99999, 0, 0};
  Differences all;
  const Json document = Json::parse(text);
  all.checkout = release_of(document, "checkout", {});
  for (const Json& entry : document.at("changes"))
    all.changes.emplace_back(entry.at("change").get<std::string>(), release_of(entry, "since", {}));
  for (const Json& entry : document.at("differences"))
    all.known.push_back(
        {.scenarios = all_of<std::string>(entry, "scenario"),
         .stages = all_of<int>(entry, "stage"),
         .dtype = entry.value("dtype", std::string()),
         .accelerator = entry.value("accelerator", std::string()),
         .releases = {release_of(entry, "since", {}), release_of(entry, "until", kAny)},
         .at = all_of<std::string>(entry, "at"),
         .is_surplus = entry.value("surplus", false),
         .moved = entry.value("moved", std::string()),
         .reason = entry.at("reason").get<std::string>()});
  return all;
}

const Differences& differences() {
  static const Differences kAll = parse_differences(deepspeed_differences_json());
  return kAll;
}

}  // namespace

const std::vector<KnownDifference>& known_differences() {
  return differences().known;
}

bool behaves(DeepspeedChange change, Release release) {
  if (release == Release{}) release = differences().checkout;
  for (const auto& [key, name] : kChangeNames)
    for (const auto& [known, since] : differences().changes)
      if (key == change && known == name) return release >= since;
  ZP_CHECK(false, "deepspeed_differences.json lacks a change");
  return false;
}

}  // namespace zeroproof
