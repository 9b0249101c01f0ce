#include "sim/zero_epilogue/schedule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::array<std::string_view, kEventKinds> kEventWords = {
    "choose_counter", "choose_callback", "hook",   "next_layer", "counter",
    "callback",       "launch",          "finish", "complete"};

std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

bool read_number(std::string_view text, std::size_t below, std::uint8_t& number) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  number = static_cast<std::uint8_t>(value);
  return error == std::errc() && end == text.data() + text.size() && value < below;
}

std::optional<Event> read_event(std::string_view line, const Settings& settings) {
  Event event;
  if (!read_number(next_word(line), settings.ranks, event.rank)) return std::nullopt;
  const auto kind = std::find(kEventWords.begin(), kEventWords.end(), next_word(line));
  if (kind == kEventWords.end()) return std::nullopt;
  event.what.kind = static_cast<EventKind>(kind - kEventWords.begin());
  const bool is_hook = event.what.kind == EventKind::hook;
  if (is_hook && !read_number(line, settings.hooks, event.what.hook)) return std::nullopt;
  return is_hook || line.empty() ? std::optional(event) : std::nullopt;
}

}  // namespace

std::string event_word(RankEvent event) {
  const std::string word(kEventWords[static_cast<std::size_t>(event.kind)]);
  return event.kind == EventKind::hook ? fmt::format("{} {}", word, event.hook) : word;
}

std::string schedule_file_text(const SavedSchedule& schedule) {
  std::string text = token_text(schedule.token) + "\n";
  for (const Event& event : schedule.events) {
    text += fmt::format("{} {}\n", event.rank, event_word(event.what));
  }
  return text;
}

Result<SavedSchedule> parse_schedule_file(std::string_view text, std::string_view where) {
  std::optional<SavedSchedule> saved;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    if (!saved) {
      const auto token = parse_token(line);
      if (!token) return tl::unexpected(token.error());
      saved = SavedSchedule{*token, {}};
      continue;
    }
    const auto event = read_event(line, saved->token.settings);
    if (!event) {
      return fail(ErrorCode::unreadable,
                  fmt::format("{}:{}: '{}' is no event of {}; expected RANK EVENT [HOOK]", where,
                              number, line.substr(0, 40), settings_text(saved->token.settings)));
    }
    saved->events.push_back(*event);
  }
  if (!saved) return fail(ErrorCode::unreadable, fmt::format("{}: no schedule in it", where));
  return *saved;
}

}  // namespace zeroproof::zero_epilogue
