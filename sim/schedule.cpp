#include "sim/schedule.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "engine/files/atomic_file.h"
#include "engine/files/small_file.h"
#include "sim/fingerprint.h"

namespace zeroproof {
namespace {

constexpr std::string_view kFamily = "zps";
constexpr std::string_view kVersion = "zps1";
constexpr std::size_t kColumns = 100;
constexpr std::size_t kChoicesMax = std::size_t{1} << 24;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 28;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_./+-").find(c) != std::string_view::npos;
}

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (is_plain(c)) {
      escaped.push_back(c);
    } else {
      escaped += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

template <class Int>
std::optional<Int> number(std::string_view text, int base = 10) {
  Int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<std::string> unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i])) {
      plain.push_back(text[i]);
      continue;
    }
    const auto byte =
        text.size() - i < 3 ? std::nullopt : number<std::uint8_t>(text.substr(i + 1, 2), 16);
    if (text[i] != '%' || !byte) return {};
    plain.push_back(static_cast<char>(*byte));
    i += 2;
  }
  return plain;
}

std::string settings_text(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [key, value] : settings) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", escape(key), escape(value));
  }
  return text;
}

std::string choices_text(const Choices& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size();) {
    std::size_t end = i;
    while (end < choices.size() && choices[end] == choices[i]) ++end;
    if (!text.empty()) text.push_back(',');
    text += end - i == 1 ? fmt::to_string(choices[i]) : fmt::format("{}x{}", end - i, choices[i]);
    i = end;
  }
  return text;
}

std::string checksum(std::string_view text) {
  return fmt::format("{:08x}", fingerprint_of(text).low & 0xffffffff);
}

std::string without_blanks(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') kept.push_back(c);
  }
  return kept;
}

// The parts between separators; one empty part for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// At most 40 characters of something wrong, safe to print.
std::string quoted(std::string_view text) {
  std::string shown = escape(text.substr(0, 40));
  return fmt::format("'{}{}'", shown, text.size() > 40 ? "..." : "");
}

class ScheduleParser {
 public:
  ScheduleParser(std::string_view text, std::string_view where)
      : text_(without_blanks(text)), where_(where) {}

  Result<Schedule> parse() {
    const std::vector<std::string_view> fields = split(text_, ':');
    if (auto problem = frame_problem(fields)) return wrong(*problem);
    const auto scenario = unescape(fields[1]);
    if (!scenario) return wrong(fmt::format("scenario {} has a bad %XX", quoted(fields[1])));
    const auto seed = number<std::uint64_t>(fields[3]);
    if (!seed) return wrong(fmt::format("seed {} is not a 64-bit number", quoted(fields[3])));

    Schedule schedule{*scenario, {}, *seed, {}};
    if (auto problem = read_settings(fields[2], schedule)) return wrong(*problem);
    if (auto problem = read_choices(fields[4], schedule)) return wrong(*problem);
    return schedule;
  }

 private:
  tl::unexpected<Error> wrong(std::string_view problem) const {
    return fail(ErrorCode::unreadable, fmt::format("{}: not a schedule: {}", where_, problem));
  }

  std::optional<std::string> frame_problem(const std::vector<std::string_view>& fields) const {
    if (text_.empty()) return "it is empty";
    if (fields[0] != kVersion) {
      return fmt::format("it starts with {}; this version reads '{}:'", quoted(fields[0]),
                         kVersion);
    }
    if (fields.size() != 6) {
      return fmt::format("it has {} fields instead of 6 (was the end lost in copying?)",
                         fields.size());
    }
    const std::string expected =
        checksum(std::string_view(text_).substr(0, text_.size() - fields[5].size()));
    if (fields[5] != expected) {
      return fmt::format("checksum {} does not match the text ('{}'): it was changed or cut",
                         quoted(fields[5]), expected);
    }
    return {};
  }

  static std::optional<std::string> read_settings(std::string_view field, Schedule& schedule) {
    if (field.empty()) return {};
    for (const std::string_view part : split(field, ',')) {
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos) {
        return fmt::format("setting {} has no '='", quoted(part));
      }
      const auto key = unescape(part.substr(0, equals));
      const auto value = unescape(part.substr(equals + 1));
      if (!key || !value) return fmt::format("setting {} has a bad %XX", quoted(part));
      if (!schedule.settings.emplace(*key, *value).second) {
        return fmt::format("setting {} is given twice", quoted(*key));
      }
    }
    return {};
  }

  static std::optional<std::string> read_choices(std::string_view field, Schedule& schedule) {
    if (field.empty()) return {};
    for (const std::string_view part : split(field, ',')) {
      const std::size_t times = part.find('x');
      const bool is_run = times != std::string_view::npos;
      const auto count = is_run ? number<std::uint64_t>(part.substr(0, times)) : 1;
      const auto choice = number<std::uint32_t>(is_run ? part.substr(times + 1) : part);
      if (!count || !choice || *count == 0) {
        return fmt::format("choice {} is neither N nor COUNTxN", quoted(part));
      }
      if (*count > kChoicesMax - schedule.choices.size()) {
        return fmt::format("it has more than {} choices", kChoicesMax);
      }
      schedule.choices.insert(schedule.choices.end(), *count, *choice);
    }
    return {};
  }

  std::string text_;
  std::string_view where_;
};

// Breaks after a separator where there is one, so that diffs of files stay readable.
std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > kColumns) {
    const std::size_t comma = text.substr(0, kColumns).find_last_of(",:");
    const std::size_t length = comma == std::string_view::npos ? kColumns : comma + 1;
    lines.append(text.substr(0, length)).push_back('\n');
    text.remove_prefix(length);
  }
  return lines.append(text).append("\n");
}

}  // namespace

std::string schedule_text(const Schedule& schedule) {
  std::string text =
      fmt::format("{}:{}:{}:{}:{}:", kVersion, escape(schedule.scenario),
                  settings_text(schedule.settings), schedule.seed, choices_text(schedule.choices));
  return text + checksum(text);
}

Result<Schedule> parse_schedule(std::string_view text, std::string_view where) {
  return ScheduleParser(text, where).parse();
}

bool is_schedule_text(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text.substr(start).starts_with(kFamily);
}

Result<void> write_schedule_file(const Schedule& schedule, const std::string& path) {
  return write_file_atomically(path, wrapped(schedule_text(schedule)));
}

Result<Schedule> read_schedule_file(const std::string& path) {
  return read_small_file(path, kFileBytesMax).and_then([&](const std::string& text) {
    return parse_schedule(text, path);
  });
}

}  // namespace zeroproof
