#include "sim/zero_epilogue/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/search/big_number.h"
#include "sim/zero_epilogue/world.h"

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::string_view kVersion = "zpe1";
constexpr std::uint32_t kRules = 510'110'113;  // tests/sim says when it is to change
constexpr std::size_t kRulesDigits = 5;

struct Letter {
  char letter;
  std::uint32_t Settings::*member;
};
constexpr std::array kTokenNumbers = {
    Letter{'P', &Settings::ranks},  Letter{'N', &Settings::hooks},
    Letter{'B', &Settings::bucket}, Letter{'K', &Settings::passes},
    Letter{'W', &Settings::leaves}, Letter{'F', &Settings::first_phase}};

std::string settings_word(const Settings& settings) {
  const Settings defaults;
  std::string text;
  for (const auto& [letter, member] : kTokenNumbers) {
    if (settings.*member != defaults.*member) text += fmt::format("{}{}", letter, settings.*member);
  }
  if (settings.order != HookOrder::any)
    text += fmt::format("O{}", static_cast<int>(settings.order));
  if (settings.is_late) text += "L1";
  if (settings.defect != Defect::none) text += defect_name(settings.defect);
  return text;
}

// The word of --set that a letter and its number stand for.
std::optional<std::string> setting_of(char letter, std::string_view number) {
  switch (letter) {
    case 'F':
      return fmt::format("N1={}", number);
    case 'L':
      return fmt::format("late={}", number);
    case 'M':
      return fmt::format("defect=M{}", number);
    case 'O':
      if (number.size() != 1 || number[0] < '0' || number[0] > '3') return std::nullopt;
      return fmt::format("order={}", order_name(static_cast<HookOrder>(number[0] - '0')));
    default:
      return fmt::format("{}={}", letter, number);
  }
}

Result<Settings> read_settings(std::string_view word) {
  std::vector<std::string> words;
  while (!word.empty()) {
    std::size_t end = 1;
    while (end < word.size() && word[end] >= '0' && word[end] <= '9') ++end;
    const auto setting = setting_of(word[0], word.substr(1, end - 1));
    if (!setting) return fail(ErrorCode::unreadable, fmt::format("no setting {}", word));
    words.push_back(*setting);
    word.remove_prefix(end);
  }
  return parse_settings(words);
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool read_expected(std::string_view text, Token& token) {
  const std::string_view name = text.substr(0, text.find('x'));
  if (name.size() == text.size() || !read_number(text.substr(name.size() + 1), token.events)) {
    return false;
  }
  for (std::size_t i = 0; i < kProperties; ++i) {
    token.expected = static_cast<Property>(i);
    if (property_name(token.expected) == name) return true;
  }
  return false;
}

tl::unexpected<Error> unreadable(std::string_view text, std::string_view problem) {
  return fail(ErrorCode::unreadable,
              fmt::format("'{}' is no schedule of zero_epilogue: {}", text.substr(0, 80), problem));
}

Result<ScheduleRun> replay_numbered(const Token& token, const BigNumber& number) {
  const auto ranks = Ranks::make(token.settings);
  if (!ranks) return tl::unexpected(ranks.error());
  const auto counts = PathCounts::make(*ranks);
  if (!counts) return tl::unexpected(counts.error());
  const auto wanted = number.wide();
  if (!wanted || !counts->has_number(*wanted)) {
    return fail(ErrorCode::unreadable, "there is no schedule of that number");
  }
  return run_leniently(ranks->rules(), counts->schedule(*wanted), AtEnd::run_on);
}

}  // namespace

std::uint32_t rules_hash() {
  return kRules;
}

std::uint32_t measured_rules_hash() {
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  for (unsigned at = 0; at < 4U * 10U * 2U; ++at) {
    const Settings settings{.hooks = 3,
                            .passes = 2,
                            .first_phase = 1,
                            .order = static_cast<HookOrder>(at % 4),
                            .defect = static_cast<Defect>(at / 4 % 10),
                            .is_late = at >= 40};
    const auto automaton = RankAutomaton::make(RankRules(settings));
    for (LocalId id = 0; automaton && id < automaton->size(); ++id) {
      add(automaton->after_completion(id));
      for (const Move& move : automaton->moves(id)) {
        add(move.next);
        add(static_cast<std::uint64_t>(move.event.kind) << 16 | move.event.hook << 8 |
            static_cast<unsigned>(move.violated));
      }
    }
  }
  return static_cast<std::uint32_t>(hash >> 34);
}

std::string token_text(const Token& token) {
  std::string rules = BigNumber(token.rules).base64();
  rules.insert(0, kRulesDigits - rules.size(), 'A');
  return fmt::format("{}.{}.{}.{}{}.{}x{}", kVersion, rules, settings_word(token.settings),
                     token.is_numbered ? 'n' : 'c', token.order, property_name(token.expected),
                     token.events);
}

bool is_token_text(std::string_view text) {
  return text.starts_with("zpe");
}

Result<Token> parse_token(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::string_view rest = text; fields.size() < 6;) {
    const std::size_t dot = rest.find('.');
    fields.push_back(rest.substr(0, dot));
    if (dot == rest.npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (fields[0] != kVersion) return unreadable(text, "this version reads 'zpe1.'");
  if (fields.size() != 5) return unreadable(text, "it has not five fields (was the end lost?)");
  const auto rules = BigNumber::from_base64(fields[1]);
  const auto order = BigNumber::from_base64(fields[3].substr(fields[3].empty() ? 0 : 1));
  if (!rules || fields[1].size() != kRulesDigits) return unreadable(text, "bad rules");
  if (!order || (fields[3][0] != 'c' && fields[3][0] != 'n')) return unreadable(text, "bad order");
  const auto settings = read_settings(fields[2]);
  if (!settings) return unreadable(text, settings.error().text);
  Token token{.rules = static_cast<std::uint32_t>(*rules->wide()),
              .settings = *settings,
              .is_numbered = fields[3][0] == 'n',
              .order = std::string(fields[3].substr(1))};
  if (!read_expected(fields[4], token)) return unreadable(text, "bad expectation");
  return token;
}

Token token_of(const Settings& settings, Property violated, const std::vector<Event>& events) {
  const RankRules rules(settings);
  World world(rules);
  struct Choice {
    unsigned index;
    unsigned count;
  };
  std::vector<Choice> choices;
  for (const Event& event : events) {
    choices.push_back({world.index_of(event), world.enabled_count()});
    world.step(event);
  }
  BigNumber number;
  for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
    number.multiply_add(choice->count, choice->index);
  }
  return {.rules = rules_hash(),
          .settings = settings,
          .order = number.base64(),
          .expected = violated,
          .events = events.size()};
}

Token numbered_token(const PathCounts& counts, const Settings& settings, Property violated,
                     const std::vector<Event>& events) {
  return {.rules = rules_hash(),
          .settings = settings,
          .is_numbered = true,
          .order = BigNumber(counts.number(events)).base64(),
          .expected = violated,
          .events = events.size()};
}

Result<ScheduleRun> replay(const Token& token) {
  BigNumber number = *BigNumber::from_base64(token.order);
  if (token.is_numbered) return replay_numbered(token, number);
  const RankRules rules(token.settings);
  World world(rules);
  ScheduleRun run;
  while (run.violated == Property::none) {
    const unsigned count = world.enabled_count();
    if (count == 0) {
      if (!world.has_finished()) run.violated = Property::a5;
      break;
    }
    run.events.push_back(world.enabled_event(number.divide(count)));
    run.violated = world.step(run.events.back());
  }
  return run;
}

}  // namespace zeroproof::zero_epilogue
