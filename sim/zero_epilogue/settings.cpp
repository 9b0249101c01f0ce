#include "sim/zero_epilogue/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "model/nearest_name.h"

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::array<std::string_view, 4> kOrders = {"any", "chain", "spine", "two_phase"};
constexpr std::array<std::string_view, 10> kDefects = {"none", "M1", "M2", "M3", "M4",
                                                       "M5",   "M6", "M7", "M8", "M9"};
constexpr std::array<std::string_view, 10> kSentences = {
    "the model has no defect",
    "the fallback counter counts only the hooks of the first phase",
    "the fallback counter does not look whether a callback is queued",
    "the callback is queued on the inner graph task, which ends early",
    "the epilogue returns without waiting for the stream",
    "buckets are launched in the order in which they fill",
    "the partly filled bucket is never flushed",
    "the fallback counter is not reset for the second pass",
    "the flag that the epilogue already ran is not looked at",
    "the flush is lost if the hooks fired in exactly reverse order",
};

struct NumberKey {
  std::string_view name;
  std::uint32_t Settings::*member;
  std::uint32_t least;
  std::uint32_t most;
};
constexpr std::array kNumbers = {
    NumberKey{"P", &Settings::ranks, 1, 8},   NumberKey{"N", &Settings::hooks, 1, 64},
    NumberKey{"B", &Settings::bucket, 1, 64}, NumberKey{"K", &Settings::passes, 1, 8},
    NumberKey{"W", &Settings::leaves, 1, 64}, NumberKey{"N1", &Settings::first_phase, 0, 64},
};
constexpr std::array<std::string_view, 9> kKeys = {"P",  "N",     "B",    "K",     "W",
                                                   "N1", "order", "late", "defect"};

template <std::size_t Count>
std::optional<std::size_t> index_of(const std::array<std::string_view, Count>& names,
                                    std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

tl::unexpected<Error> wrong(std::string_view word, std::string_view what) {
  return fail(ErrorCode::usage, fmt::format("zero_epilogue: --set {}: {}", word, what));
}

Result<void> set_number(Settings& settings, const NumberKey& key, std::string_view word) {
  const std::string_view text = word.substr(key.name.size() + 1);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || value < key.least || value > key.most) {
    return wrong(word, fmt::format("{} is a number from {} to {}", key.name, key.least, key.most));
  }
  settings.*key.member = value;
  return {};
}

Result<void> set_word(Settings& settings, std::string_view key, std::string_view value,
                      std::string_view word) {
  if (key == "order") {
    const auto index = index_of(kOrders, value);
    if (!index) return wrong(word, did_you_mean(std::string(value), kOrders));
    settings.order = static_cast<HookOrder>(*index);
  } else if (key == "defect") {
    const auto index = index_of(kDefects, value);
    if (!index) return wrong(word, did_you_mean(std::string(value), kDefects));
    settings.defect = static_cast<Defect>(*index);
  } else if (key == "late") {
    if (value != "0" && value != "1") return wrong(word, "late is 0 or 1");
    settings.is_late = value == "1";
  } else {
    return wrong(word, "unknown setting: " + did_you_mean(std::string(key), kKeys));
  }
  return {};
}

Result<void> check(const Settings& settings) {
  if (settings.first_phase > settings.hooks) {
    return wrong(fmt::format("N1={}", settings.first_phase), "there are only N hooks");
  }
  const bool has_tags = settings.defect == Defect::launch_when_filled;
  if (has_tags && (settings.collectives() > 16 || settings.buckets() > 15)) {
    return wrong("defect=M5", "at most 16 collectives of 15 buckets, lower N or K or raise B");
  }
  if (settings.collectives() > 255) return wrong("K", "at most 255 collectives");
  return {};
}

}  // namespace

Result<Settings> parse_settings(std::span<const std::string> words) {
  Settings settings;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    if (equals == word.npos) return wrong(word, "expected KEY=VALUE");
    const auto number = std::ranges::find(kNumbers, key, &NumberKey::name);
    auto set = number != kNumbers.end() ? set_number(settings, *number, word)
                                        : set_word(settings, key, word.substr(equals + 1), word);
    if (!set) return tl::unexpected(set.error());
  }
  if (auto checked = check(settings); !checked) return tl::unexpected(checked.error());
  return settings;
}

std::string settings_text(const Settings& settings) {
  const Settings defaults;
  std::string text;
  for (const NumberKey& key : kNumbers) {
    const bool is_always_shown = key.name == "P" || key.name == "N";
    if (!is_always_shown && settings.*key.member == defaults.*key.member) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key.name, settings.*key.member);
  }
  if (settings.order != HookOrder::any)
    text += fmt::format(" order={}", order_name(settings.order));
  if (settings.is_late) text += " late=1";
  if (settings.defect != Defect::none) {
    text += fmt::format(" defect={}", defect_name(settings.defect));
  }
  return text;
}

std::string_view order_name(HookOrder order) {
  return kOrders[static_cast<std::size_t>(order)];
}
std::string_view defect_name(Defect defect) {
  return kDefects[static_cast<std::size_t>(defect)];
}
std::string_view defect_sentence(Defect defect) {
  return kSentences[static_cast<std::size_t>(defect)];
}

}  // namespace zeroproof::zero_epilogue
