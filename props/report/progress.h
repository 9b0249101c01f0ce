#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "props/report/palette.h"

namespace zeroproof {

enum class ProgressMode {
  automatic,  // redraws on a terminal, lines otherwise
  lines,      // a line after two seconds and every five
  none,       // no output
};

// "auto", "line" or "none".
std::optional<ProgressMode> progress_mode_of(std::string_view text);

// What a progress line can say; what is absent is left out.
struct ProgressView {
  std::string task;      // "explore S2"
  std::string strategy;  // "exhaustive"
  std::uint64_t runs = 0;
  std::optional<std::uint64_t> runs_max = {};
  std::string_view unit = "runs";  // of them; empty: they are not known, the time is shown
  std::optional<std::int64_t> seconds_max = {};
  std::uint64_t depth = 0;
  std::optional<std::uint64_t> states = {};
  std::optional<std::uint64_t> unique = {};
  std::uint64_t unique_of = 0;  // for their share; 0: not known
  std::optional<std::pair<std::uint64_t, std::uint64_t>> sometimes = {};  // reached, of how many
  std::optional<std::uint64_t> features = {};                             // of programs, covered
  std::optional<std::uint64_t> findings = 0;  // absent: the task looks for none
  std::optional<std::uint64_t> hangs = {};
};

// Where a progress line goes and what time it is; replaced in tests.
struct ProgressOutput {
  std::function<void(std::string_view)> write;
  std::function<std::int64_t()> now_ns;  // monotonic
  TerminalFacts facts;
};

// stderr and the steady clock.
ProgressOutput standard_error_output();

// Talks about a long run: at most ten redraws a second on a terminal, else a line after two seconds
// and every five, and a last line in the end. Not thread-safe.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressMode mode, ProgressOutput output = standard_error_output());

  // Cheap when no line is due: `make_view` is called only when a line will be written.
  template <class MakeView>
  void update(MakeView make_view) {
    if (is_due()) draw(make_view());
  }

  // A line that stays, above the progress.
  void say(const std::string& line);

  // The last line, also after Ctrl-C. It is the last output.
  void finish(const ProgressView& view);

  // The text of the line, without line end.
  static std::string text(const ProgressView& view, std::int64_t elapsed_ns, bool is_final);

 private:
  bool is_due();
  void draw(const ProgressView& view);

  ProgressMode mode_;
  ProgressOutput output_;
  bool redraws_;
  std::int64_t start_ns_;
  std::int64_t now_ns_;
  std::int64_t next_ns_;
  bool has_drawn_ = false;
  bool has_finished_ = false;
};

}  // namespace zeroproof
