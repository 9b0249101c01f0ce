#include "props/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kRedrawPeriodNs = kSecondNs / 10;
constexpr std::int64_t kLinePeriodNs = 5 * kSecondNs;
constexpr std::int64_t kFirstLineNs = 2 * kSecondNs;

std::int64_t steady_now_ns() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count();
}

// "3.1k/s", "4.5/s"; slower than one a second, the seconds of a run: "2.5 s each", "40 s each".
// Empty before the first run ends.
std::string rate_text(std::uint64_t runs, std::int64_t elapsed_ns) {
  constexpr double kWhole = 10;  // from here on without a tenth
  if (runs == 0 || elapsed_ns <= 0) return {};
  const double rate = static_cast<double>(runs) * 1e9 / static_cast<double>(elapsed_ns);
  if (rate >= kWhole) return short_count(static_cast<std::uint64_t>(rate)) + "/s";
  const double number = rate < 1 ? 1 / rate : rate;
  const double shown = number < kWhole ? std::floor(number * 10) / 10 : std::floor(number);
  return fmt::format("{:g}{}", shown, rate < 1 ? " s each" : "/s");
}

// Until the first limit is met; absent without limits.
std::optional<std::int64_t> seconds_left(const ProgressView& view, std::int64_t elapsed_ns) {
  std::optional<std::int64_t> left;
  if (view.seconds_max) left = *view.seconds_max - elapsed_ns / kSecondNs;
  if (view.runs_max && view.runs > 0) {
    const auto open = static_cast<double>(*view.runs_max - std::min(*view.runs_max, view.runs));
    const double elapsed_s = static_cast<double>(elapsed_ns) * 1e-9;
    const auto by_runs =
        static_cast<std::int64_t>(open * elapsed_s / static_cast<double>(view.runs));
    left = std::min(left.value_or(by_runs), by_runs);
  }
  return left;
}

std::string runs_text(const ProgressView& view) {
  const std::string runs = short_count(view.runs);
  if (view.runs_max) return fmt::format("{}/{} {}", runs, short_count(*view.runs_max), view.unit);
  const bool is_one = view.runs == 1 && view.unit.ends_with('s');
  return fmt::format("{} {}", runs, view.unit.substr(0, view.unit.size() - (is_one ? 1 : 0)));
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
      next_ns_(start_ns_ + (redraws_ ? kRedrawPeriodNs : kFirstLineNs)) {}

bool ProgressLine::is_due() {
  if (mode_ == ProgressMode::none || has_finished_) return false;
  now_ns_ = output_.now_ns();
  return now_ns_ >= next_ns_;
}

void ProgressLine::draw(const ProgressView& view) {
  next_ns_ = now_ns_ + (redraws_ ? kRedrawPeriodNs : kLinePeriodNs);
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
    if (auto rate = rate_text(view.runs, elapsed_ns); !rate.empty())
      parts.push_back(std::move(rate));
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
  if (view.findings) parts.push_back(counted(*view.findings, "finding"));
  if (view.hangs) parts.push_back(counted(*view.hangs, "hang"));
  const auto left = seconds_left(view, elapsed_ns);
  if (is_final) {
    parts.push_back("took " + clock_text(elapsed_ns / kSecondNs));
  } else if (left) {
    parts.push_back(clock_text(*left) + " left");
  } else if (view.unit.empty()) {
    parts.push_back(clock_text(elapsed_ns / kSecondNs) + " so far");
  }
  return fmt::format("{}", fmt::join(parts, "  "));
}

}  // namespace zeroproof
