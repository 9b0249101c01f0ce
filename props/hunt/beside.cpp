#include "props/hunt/beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "props/interpreter/difference.h"
#include "props/program/program_text.h"
#include "props/program/shrink.h"
#include "props/program/source_chooser.h"
#include "props/train/cell_run.h"
#include "props/train/rank_tokens.h"

namespace zeroproof::hunt {
namespace {

using program::ProgramRun;
using program::RankRun;
using program::RunnableProgram;

struct Watched {
  train::RankTokens tokens;
  ProgramRun run;
};

int last_ranks(const RunnableProgram& runnable) {
  return runnable.segments().back().ranks * runnable.program().world.tensor;
}

int most_ranks(const RunnableProgram& runnable) {
  int most = 0;
  for (const RunnableProgram::Segment& segment : runnable.segments())
    most = std::max(most, segment.ranks * runnable.program().world.tensor);
  return most;
}

std::string error_of(const RankRun& rank) {
  return rank.error ? train::text_of(rank.error) : "no error";
}

// The first line that is another one.
std::string token_difference(std::string_view simulated, std::string_view other) {
  const auto [ours, theirs] = std::ranges::mismatch(simulated, other);
  const auto at = static_cast<std::size_t>(ours - simulated.begin());
  const std::size_t begin = at == 0 ? 0 : simulated.rfind('\n', at - 1) + 1;
  const auto line = [&](std::string_view text) {
    return text.substr(std::min(begin, text.size())).substr(0, text.find('\n', begin) - begin);
  };
  return fmt::format("token {}: '{}' simulated, and '{}'",
                     std::count(simulated.begin(), ours, '\n') + 1, line(simulated), line(other));
}

// An engine may observe more than the other side knows of, so both are asked.
std::string value_difference(const RankRun& simulated, const RankRun& other,
                             const program::Tolerance& tolerance) {
  const auto found = program::differences(other.seen, simulated.seen, tolerance);
  if (!found.empty()) return found.front().text + " as simulated";
  const auto missing = program::differences(simulated.seen, other.seen, tolerance);
  return missing.empty() ? "" : missing.front().text + ", which is simulated";
}

std::string difference_of(const Watched& simulated, const Watched& other,
                          const program::Tolerance& tolerance) {
  if (simulated.run.segments.size() != other.run.segments.size())
    return fmt::format("{} worlds simulated, and {}", simulated.run.segments.size(),
                       other.run.segments.size());
  for (std::size_t i = 0; i < simulated.run.segments.size(); ++i) {
    const auto& ours = simulated.run.segments[i].ranks;
    const auto& theirs = other.run.segments[i].ranks;
    for (std::size_t rank = 0; rank < ours.size(); ++rank) {
      const auto say = [&](const std::string& what) {
        return fmt::format("world {}, rank {}: {}", i, rank, what);
      };
      if (error_of(ours[rank]) != error_of(theirs[rank]))
        return say(
            fmt::format("{} simulated, and {}", error_of(ours[rank]), error_of(theirs[rank])));
      const std::string values = value_difference(ours[rank], theirs[rank], tolerance);
      if (!values.empty()) return say(values);
    }
  }
  const std::size_t ranks = simulated.run.segments.back().ranks.size();
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (simulated.tokens.of(rank) != other.tokens.of(rank))
      return fmt::format("rank {}, {}", rank,
                         token_difference(simulated.tokens.of(rank), other.tokens.of(rank)));
  return {};
}

void count(const Watched& simulated, BesideRun& result) {
  for (const program::SegmentRun& segment : simulated.run.segments)
    for (const RankRun& rank : segment.ranks)
      for (const program::Observation& one : rank.seen) result.values += one.values.size();
  for (std::size_t rank = 0; rank < simulated.run.segments.back().ranks.size(); ++rank)
    result.tokens +=
        static_cast<std::uint64_t>(std::ranges::count(simulated.tokens.of(rank), '\n'));
}

// What a minimised case is made of.
struct Tried {
  BesideRun run;
  program::Choices choices;
  std::string text;
};

std::optional<Tried> try_case(const ProgramHuntOptions& options, const Gpus* gpus,
                              program::Source source) {
  DrawnProgram drawn = options.draw(std::move(source));
  if (!drawn.program) return std::nullopt;
  program::SourceChooser chooser(drawn.source);
  const RunnableProgram& runnable = drawn.program->runnable();
  Tried tried{.run = run_beside(runnable, gpus, chooser), .choices = {}, .text = {}};
  tried.choices = drawn.source.choices();
  if (!tried.run.difference.empty())
    tried.text = program::program_text(runnable.program(), &runnable.contract());
  return tried;
}

BesideFound found_of(const ProgramHuntOptions& options, const Gpus* gpus, const Tried& tried) {
  BesideFound found{.difference = tried.run.difference,
                    .values = program::values_of(tried.choices),
                    .text = tried.text,
                    .choices_before = tried.choices.list.size()};
  if (!options.minimizes) return found;
  const program::StillFails fails =
      [&](const std::vector<std::uint32_t>& values) -> std::optional<program::Choices> {
    const auto again = try_case(options, gpus, program::Source(values));
    if (!again || again->run.difference.empty()) return std::nullopt;
    return again->choices;
  };
  const program::Shrunk shrunk = program::shrink(tried.choices, fails, options.shrink_runs);
  found.values = program::values_of(shrunk.choices);
  found.shrink_runs = shrunk.runs;
  if (const auto last = try_case(options, gpus, program::Source(found.values))) {
    found.difference = last->run.difference;
    found.text = last->text;
  }
  return found;
}

}  // namespace

BesideRun run_beside(const RunnableProgram& runnable, const Gpus* gpus, Chooser& chooser) {
  BesideRun result;
  if (gpus && most_ranks(runnable) > gpus->count()) {
    result.has_run = false;
    return result;
  }
  const int ranks = last_ranks(runnable);
  const bool is_stage0 = runnable.segments().back().config.stage == 0;
  const Device device = gpus ? Device::cuda(0) : Device::cpu();
  Watched simulated{train::RankTokens(ranks, is_stage0), {}};
  simulated.run = program::run_program(
      runnable, {.chooser = &chooser, .device = device, .watch = &simulated.tokens});
  count(simulated, result);
  for (const program::SegmentRun& segment : simulated.run.segments)
    if (!segment.findings.empty()) {
      result.difference = "not run there: " + segment.findings.front().text;
      return result;
    }
  Watched other{train::RankTokens(ranks, is_stage0), {}};
  other.run =
      program::run_program(runnable, {.device = device, .gpus = gpus, .watch = &other.tokens});
  program::Tolerance tolerance = program::tolerance_of(runnable.program());
  tolerance.is_real = tolerance.is_real && gpus != nullptr;
  result.difference = difference_of(simulated, other, tolerance);
  return result;
}

BesideReport search_beside(const ProgramHuntOptions& options, const Gpus* gpus,
                           const ProgramHuntWatch& watch) {
  BesideReport report;
  const std::int64_t start = watch.now_ns();
  for (std::uint64_t number = 0; number < options.cases_max; ++number) {
    if (watch.should_stop && watch.should_stop()) break;
    if (watch.now_ns() - start > options.time_max_ns) break;
    const auto tried = try_case(options, gpus, program::Source(case_seed(options.seed, number)));
    if (!tried) continue;
    ++report.cases;
    if (!tried->run.has_run) ++report.skipped;
    report.tokens += tried->run.tokens;
    report.values += tried->run.values;
    if (tried->run.difference.empty()) continue;
    report.findings.push_back(found_of(options, gpus, *tried));
    report.findings.back().case_number = number;
  }
  report.seconds = static_cast<double>(watch.now_ns() - start) * 1e-9;
  return report;
}

}  // namespace zeroproof::hunt
