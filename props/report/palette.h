#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace zeroproof {

enum class ColorChoice { automatic, always, never };

// "auto", "always" or "never".
std::optional<ColorChoice> color_choice_of(std::string_view text);

// What decides about colour and redrawing. Unset variables are empty options.
struct TerminalFacts {
  bool is_terminal = false;
  std::size_t columns = 80;
  std::optional<std::string> no_color;
  std::optional<std::string> clicolor;
  std::optional<std::string> clicolor_force;
  std::optional<std::string> term;

  bool can_redraw() const { return is_terminal && term != "dumb"; }
};

// Of a file descriptor of this process, e.g. 1 for stdout. Not for use beside setenv.
TerminalFacts terminal_facts(int descriptor);

// The flag first; then NO_COLOR (not empty), CLICOLOR_FORCE (neither empty nor 0), CLICOLOR=0,
// TERM=dumb, and whether it is a terminal.
bool wants_color(ColorChoice choice, const TerminalFacts& facts);

// The few roles that colour marks. Text means the same without it.
class Palette {
 public:
  Palette() = default;
  explicit Palette(bool has_color) : has_color_(has_color) {}

  std::string bad(std::string_view text) const { return dress(text, "1;31"); }
  std::string good(std::string_view text) const { return dress(text, "32"); }
  std::string notice(std::string_view text) const { return dress(text, "33"); }
  std::string title(std::string_view text) const { return dress(text, "1"); }
  std::string faint(std::string_view text) const { return dress(text, "2"); }

 private:
  std::string dress(std::string_view text, std::string_view code) const;

  bool has_color_ = false;
};

}  // namespace zeroproof
