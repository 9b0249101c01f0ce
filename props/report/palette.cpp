#include "props/report/palette.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace zeroproof {
namespace {

constexpr std::size_t kColumnsMin = 40;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<std::size_t> columns_of(int descriptor) {
  winsize size = {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const auto text = variable("COLUMNS");
  std::size_t columns = 0;
  if (!text) return {};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), columns);
  if (error != std::errc() || end != text->data() + text->size()) return {};
  return columns;
}

}  // namespace

std::optional<ColorChoice> color_choice_of(std::string_view text) {
  if (text == "auto") return ColorChoice::automatic;
  if (text == "always") return ColorChoice::always;
  if (text == "never") return ColorChoice::never;
  return {};
}

TerminalFacts terminal_facts(int descriptor) {
  TerminalFacts facts;
  facts.is_terminal = ::isatty(descriptor) == 1;
  const auto columns = columns_of(descriptor);
  if (columns && *columns >= kColumnsMin) facts.columns = *columns;
  facts.no_color = variable("NO_COLOR");
  facts.clicolor = variable("CLICOLOR");
  facts.clicolor_force = variable("CLICOLOR_FORCE");
  facts.term = variable("TERM");
  return facts;
}

bool wants_color(ColorChoice choice, const TerminalFacts& facts) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  if (!facts.no_color.value_or("").empty()) return false;
  const std::string force = facts.clicolor_force.value_or("");
  if (!force.empty() && force != "0") return true;
  return facts.clicolor != "0" && facts.can_redraw();
}

std::string Palette::dress(std::string_view text, std::string_view code) const {
  if (!has_color_ || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace zeroproof
