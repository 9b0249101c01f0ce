#include "props/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;
constexpr std::int64_t kRedrawPeriod_ns = kSecond_ns / 10;
constexpr std::int64_t kLinePeriod_ns = 5 * kSecond_ns;
constexpr std::int64_t kFirstLine_ns = 2 * kSecond_ns;

std::int64_t steady_now_ns() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count();
}

std::uint64_t rate_per_s(std::uint64_t count, std::int64_t elapsed_ns) {
  if (elapsed_ns <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(count) * 1e9 /
                                    static_cast<double>(elapsed_ns));
}

// Slow runs with a tenth.
std::string rate_text(std::uint64_t runs, std::int64_t elapsed_ns) {
  constexpr std::uint64_t kFast = 10;
  const std::uint64_t rate = rate_per_s(runs, elapsed_ns);
  const std::uint64_t tenths = rate_per_s(10 * runs, elapsed_ns);
  if (rate >= kFast || tenths % 10 == 0) return short_count(rate) + "/s";
  return fmt::format("{}.{}/s", tenths / 10, tenths % 10);
}

// Until the first limit is met; absent without limits.
std::optional<std::int64_t> seconds_left(const ProgressView& view, std::int64_t elapsed_ns) {
  std::optional<std::int64_t> left;
  if (view.seconds_max) left = *view.seconds_max - elapsed_ns / kSecond_ns;
  const std::uint64_t rate = rate_per_s(view.runs, elapsed_ns);
  if (view.runs_max && rate > 0) {
    const auto by_runs =
        static_cast<std::int64_t>((*view.runs_max - std::min(*view.runs_max, view.runs)) / rate);
    left = std::min(left.value_or(by_runs), by_runs);
  }
  return left;
}

std::string runs_text(const ProgressView& view) {
  const std::string runs = short_count(view.runs);
  if (!view.runs_max) return fmt::format("{} {}", runs, view.unit);
  return fmt::format("{}/{} {}", runs, short_count(*view.runs_max), view.unit);
}

std::string findings_text(std::uint64_t findings) {
  return fmt::format("{} finding{}", findings, findings == 1 ? "" : "s");
}

}  // namespace

std::optional<ProgressMode> progress_mode_of(std::string_view text) {
  if (text == "auto") return ProgressMode::automatic;
  if (text == "line") return ProgressMode::lines;
  if (text == "none") return ProgressMode::none;
  return {};
}

ProgressOutput standard_error_output() {
  const auto write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return {write, steady_now_ns, terminal_facts(STDERR_FILENO)};
}

ProgressLine::ProgressLine(ProgressMode mode, ProgressOutput output)
    : mode_(mode),
      output_(std::move(output)),
      redraws_(mode == ProgressMode::automatic && output_.facts.can_redraw()),
      start_ns_(output_.now_ns()),
      now_ns_(start_ns_),
      next_ns_(start_ns_ + (redraws_ ? kRedrawPeriod_ns : kFirstLine_ns)) {}

bool ProgressLine::is_due() {
  if (mode_ == ProgressMode::none || has_finished_) return false;
  now_ns_ = output_.now_ns();
  return now_ns_ >= next_ns_;
}

void ProgressLine::draw(const ProgressView& view) {
  next_ns_ = now_ns_ + (redraws_ ? kRedrawPeriod_ns : kLinePeriod_ns);
  const std::string line = text(view, now_ns_ - start_ns_, false);
  if (redraws_) {
    // One column stays free: a full line would make some terminals wrap.
    output_.write("\r" + elided(line, output_.facts.columns - 1) + "\x1b[K");
    has_drawn_ = true;
  } else {
    output_.write(line + "\n");
  }
}

void ProgressLine::say(const std::string& line) {
  if (mode_ == ProgressMode::none || has_finished_) return;
  output_.write((has_drawn_ ? "\r" : "") + line + (has_drawn_ ? "\x1b[K\n" : "\n"));
  has_drawn_ = false;
}

void ProgressLine::finish(const ProgressView& view) {
  if (mode_ == ProgressMode::none || has_finished_) return;
  has_finished_ = true;
  const std::string line = text(view, output_.now_ns() - start_ns_, true);
  output_.write((has_drawn_ ? "\r" : "") + line + (has_drawn_ ? "\x1b[K\n" : "\n"));
}

std::string ProgressLine::text(const ProgressView& view, std::int64_t elapsed_ns, bool is_final) {
  std::vector<std::string> parts = {view.task};
  if (!view.strategy.empty()) parts.push_back(view.strategy);
  if (!view.unit.empty()) {
    parts.push_back(runs_text(view));
    parts.push_back(rate_text(view.runs, elapsed_ns));
  }
  if (view.depth > 0) parts.push_back(fmt::format("depth {}", view.depth));
  if (view.states) parts.push_back("states " + short_count(*view.states));
  if (view.unique) parts.push_back("unique " + short_count(*view.unique));
  if (view.unique && view.unique_of > 0)
    parts.back() += fmt::format(" ({}%)", *view.unique * 100 / view.unique_of);
  if (view.features) parts.push_back(short_count(*view.features) + " features");
  if (view.sometimes) {
    parts.push_back(fmt::format("sometimes {}/{}", view.sometimes->first, view.sometimes->second));
  }
  if (view.findings) parts.push_back(findings_text(*view.findings));
  if (view.hangs)
    parts.push_back(fmt::format("{} hang{}", *view.hangs, *view.hangs == 1 ? "" : "s"));
  const auto left = seconds_left(view, elapsed_ns);
  if (is_final) {
    parts.push_back("took " + clock_text(elapsed_ns / kSecond_ns));
  } else if (left) {
    parts.push_back(clock_text(*left) + " left");
  } else if (view.unit.empty()) {
    parts.push_back(clock_text(elapsed_ns / kSecond_ns) + " so far");
  }
  return fmt::format("{}", fmt::join(parts, "  "));
}

}  // namespace zeroproof
