#include "sim/hook_order/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "engine/quirk_effect.h"
#include "model/nearest_name.h"

namespace zeroproof::hook_order {
namespace {

constexpr std::array<std::string_view, 2> kOrders = {"any", "same"};
constexpr std::array<std::string_view, 5> kDefects = {"none", "lost_wait", "lost_hook",
                                                      "split_task", "double_hook"};
constexpr std::array<std::string_view, 5> kSentences = {
    "the model has no defect",
    "streams do not wait for each other",
    "the last rank never fires its last hook",
    "the last rank fires its last hook in a graph task of its own, after the others",
    "the last rank fires its last hook twice",
};

struct NumberKey {
  std::string_view name;
  std::uint32_t Settings::*member;
  std::uint32_t least;
  std::uint32_t most;
};
constexpr std::array kNumbers = {
    NumberKey{"P", &Settings::ranks, 1, Settings::kRanksMax},
    NumberKey{"N", &Settings::hooks, 1, Settings::kHooksMax},
    NumberKey{"B", &Settings::bucket, 1, Settings::kHooksMax},
    NumberKey{"K", &Settings::passes, 1, 4},
    NumberKey{"E", &Settings::elements, 1, 64},
    NumberKey{"stage", &Settings::stage, 1, 3},
};
constexpr std::array<std::string_view, 10> kKeys = {
    "P", "N", "B", "K", "E", "stage", "order", "overlap", "quirks", "defect"};

tl::unexpected<Error> wrong(std::string_view word, std::string_view what) {
  return fail(ErrorCode::usage, fmt::format("hook_order: --set {}: {}", word, what));
}

Result<void> set_number(Settings& settings, const NumberKey& key, std::string_view word) {
  const std::string_view text = word.substr(key.name.size() + 1);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || value < key.least || value > key.most)
    return wrong(word, fmt::format("{} is a number from {} to {}", key.name, key.least, key.most));
  settings.*key.member = value;
  return {};
}

template <class Enum, std::size_t Count>
Result<void> set_name(Enum& place, const std::array<std::string_view, Count>& names,
                      std::string_view value, std::string_view word) {
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) return wrong(word, did_you_mean(std::string(value), names));
  place = static_cast<Enum>(found - names.begin());
  return {};
}

Result<void> set_word(Settings& settings, std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == word.npos) return wrong(word, "expected KEY=VALUE");
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  const auto number = std::ranges::find(kNumbers, key, &NumberKey::name);
  if (number != kNumbers.end()) return set_number(settings, *number, word);
  if (key == "order") return set_name(settings.order, kOrders, value, word);
  if (key == "defect") return set_name(settings.defect, kDefects, value, word);
  if (key == "quirks") {
    auto quirks = Quirks::parse(value);
    if (!quirks) return wrong(word, quirks.error().text);
    settings.quirks = *quirks;
    return {};
  }
  if (key != "overlap")
    return wrong(word, "unknown setting: " + did_you_mean(std::string(key), kKeys));
  if (value != "0" && value != "1") return wrong(word, "overlap is 0 or 1");
  settings.has_overlap = value == "1";
  return {};
}

}  // namespace

Result<Settings> parse_settings(std::span<const std::string> words) {
  Settings settings;
  for (const std::string_view word : words)
    if (auto set = set_word(settings, word); !set) return tl::unexpected(set.error());
  return settings;
}

std::string settings_text(const Settings& settings) {
  const Settings defaults;
  std::string text;
  for (const NumberKey& key : kNumbers) {
    const bool is_always_shown = key.name == "P" || key.name == "N" || key.name == "stage";
    if (!is_always_shown && settings.*key.member == defaults.*key.member) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key.name, settings.*key.member);
  }
  if (settings.order != defaults.order)
    text += fmt::format(" order={}", kOrders[static_cast<std::size_t>(settings.order)]);
  if (settings.has_overlap) text += " overlap=1";
  if (!settings.quirks.is_empty()) text += " quirks=" + settings.quirks.text();
  if (settings.defect != Defect::none)
    text += fmt::format(" defect={}", kDefects[static_cast<std::size_t>(settings.defect)]);
  return text;
}

std::string_view defect_sentence(Defect defect) {
  return kSentences[static_cast<std::size_t>(defect)];
}

}  // namespace zeroproof::hook_order
