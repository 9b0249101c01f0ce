// `zeroproof watch`: the recordings of a running job, judged while they grow.
#include "props/watch/watch.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <filesystem>

#include "props/cli/explore_watch.h"
#include "props/cli/interrupt.h"
#include "props/cli/verb.h"
#include "props/cli/watch_folder.h"
#include "props/report/watch_report.h"

namespace zeroproof {
namespace {

constexpr double kSecondNs = 1e9;

// "30" or "0.5". Code usage.
Result<std::int64_t> parse_seconds(std::string_view text, std::string_view flag) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr double kMax = 1e7;
  if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0) || seconds > kMax)
    return fail(
        ErrorCode::usage,
        fmt::format("watch: --{}: '{}' is no number of seconds: write 30 or 0.5", flag, text));
  return static_cast<std::int64_t>(seconds * kSecondNs);
}

// Ends early when the user interrupts.
void sleep_ns(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec time = {static_cast<std::time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  nanosleep(&time, nullptr);
}

class WatchVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"DIR", "folder that the recorder writes to: its --out"});
    flags.add_value("hang-after", hang_after_,
                    {"SECONDS",
                     "report a hang when ranks wait in a collective, and neither they nor the "
                     "missing ranks had an event for so long (default 30)"});
    flags.add_value("interval", interval_,
                    {"SECONDS", "time between two looks at the files (default 0.5)"});
    flags.add_switch("until-end", is_until_end_, "go on after a finding, to the end of the job");
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.size() != 1)
      return fail(ErrorCode::usage, "watch: name one folder: the --out of the recorder");
    const auto options = watch_options();
    if (!options) return tl::unexpected(options.error());
    const auto interval = parse_seconds(interval_, "interval");
    if (!interval) return tl::unexpected(interval.error());
    std::error_code ignored;
    const auto status = std::filesystem::status(words_.front(), ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status))
      return fail(ErrorCode::unreadable,
                  fmt::format("{}: is no folder: watch follows the folder of a job, `zeroproof "
                              "replay` reads a file",
                              words_.front()));
    return follow(session, *options, *interval);
  }

 private:
  Result<WatchOptions> watch_options() const {
    const auto hang_after = parse_seconds(hang_after_, "hang-after");
    if (!hang_after) return tl::unexpected(hang_after.error());
    WatchOptions options;
    options.hang_after_ns = *hang_after;
    return options;
  }

  Result<VerbResult> follow(Session& session, const WatchOptions& options, std::int64_t interval) {
    WatchFolder folder(words_.front());
    Watch watch(options, [&](const WatchedRank& rank) { return folder.snapshot(rank); });
    const std::int64_t start = now_ns();
    bool has_said = false;
    while (!was_interrupted()) {
      folder.look(watch);
      for (const WatchNews& news : watch.tick(now_ns() - start)) print(session, news);
      session.out.flush();
      if (session.out.error() || watch.is_over()) break;
      if (watch.has_defect() && !is_until_end_) break;
      if (watch.is_empty() && !std::exchange(has_said, true))
        session.say(fmt::format("watch: {}: no recording yet, waiting for one", words_.front()));
      sleep_ns(interval);
    }
    return result(session, watch);
  }

  void print(Session& session, const WatchNews& news) {
    session.out.write(session.common.wants_json
                          ? watch_json(news) + "\n"
                          : watch_text(news, session.terminal.columns, session.palette));
    if (news.answer) answers_.push_back(*news.answer);
  }

  // Every form but the last line was written already.
  Result<VerbResult> result(Session& session, const Watch& watch) {
    const ExitCode code = watch.has_defect()  ? ExitCode::falsified
                          : watch.has_fault() ? ExitCode::unreadable
                                              : ExitCode::held;
    VerbResult result{.code = was_interrupted() ? ExitCode::interrupted : code};
    if (!session.common.wants_json) {
      result.text = [&session, code, is_over = watch.is_over(), folder = words_.front()] {
        if (code == ExitCode::held)
          return std::string(is_over ? "held: every rank has ended, and no rule was broken\n" : "");
        return (is_over ? fmt::format("next  zeroproof replay {}\n", folder) : std::string()) +
               session.reproduce_line(code);
      };
    }
    result.junit = [answers = answers_] {
      std::vector<JUnitCase> cases;
      for (const Diagnosis& one : answers)
        cases.push_back(
            {"watch", one.kind,
             one.gravity == Gravity::defect ? JUnitOutcome::failed : JUnitOutcome::passed,
             one.what});
      return cases;
    };
    return result;
  }

  std::vector<std::string> words_;
  std::string hang_after_ = "30";
  std::string interval_ = "0.5";
  bool is_until_end_ = false;
  std::vector<Diagnosis> answers_;
};

}  // namespace

std::unique_ptr<Verb> make_watch() {
  return std::make_unique<WatchVerb>();
}

}  // namespace zeroproof
