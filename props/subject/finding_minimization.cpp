// How a hunt makes the program of a finding small.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "props/program/program_json.h"
#include "props/program/shrink.h"
#include "props/subject/program_reduction.h"
#include "props/subject/subject_hunt.h"

namespace zeroproof::subject {
namespace {

constexpr std::size_t kShrinkAttempts = 20'000;  // draws; most of them are no new program

}  // namespace

// First the choices that it is drawn from, where there are any, then the program itself.
void SubjectHunt::minimize(SubjectFinding& finding, const program::Choices* start) {
  Attempts attempts{.finding = finding,
                    .runs_max = options_.shrink_runs * 2 / 3,
                    .begin_ns = watch_.now_ns(),
                    .time_max_ns = options_.shrink_time_ns / 3 * 2};
  attempts.tried[program::program_line(finding.program)] = finding.verdict;
  SubjectFinding small = finding;
  if (start != nullptr) small.program = shrunk_choices(attempts, *start);
  attempts.runs_max = options_.shrink_runs;
  attempts.time_max_ns = options_.shrink_time_ns;
  small.program = reduced(small.program, [&](const program::Program& program) {
    return !is_spent(attempts) && !cases_.lack(program) && still_fails(attempts, program);
  });
  if (const auto& verdict = attempts.tried[program::program_line(small.program)])
    small.verdict = *verdict;
  small.statements_before = statements_of(finding.program);
  small.shrink_runs = attempts.runs;
  confirm(small);
  if (!small.is_flaky()) finding = std::move(small);
}

program::Program SubjectHunt::shrunk_choices(Attempts& attempts, const program::Choices& start) {
  const program::StillFails fails =
      [&](const std::vector<std::uint32_t>& values) -> std::optional<program::Choices> {
    if (is_spent(attempts)) return std::nullopt;
    const DrawnCase drawn = cases_.draw(program::Source(values));
    if (drawn.lacking || !still_fails(attempts, drawn.program)) return std::nullopt;
    return drawn.choices;
  };
  const program::Shrunk shrunk = program::shrink(start, fails, kShrinkAttempts);
  return cases_.draw(program::Source(program::values_of(shrunk.choices))).program;
}

bool SubjectHunt::is_spent(const Attempts& attempts) const {
  return attempts.runs >= attempts.runs_max ||
         watch_.now_ns() - attempts.begin_ns > attempts.time_max_ns || report_.problem ||
         (watch_.should_stop && watch_.should_stop());
}

// One that is known by its small program may get another name on the way.
bool SubjectHunt::is_alike(const Verdict& one, const Verdict& other) const {
  return options_.minimizes_known ? one.signature == other.signature : one.group() == other.group();
}

// A program runs once, however often it is asked for.
bool SubjectHunt::still_fails(Attempts& attempts, const program::Program& program) {
  const auto [at, is_new] = attempts.tried.try_emplace(program::program_line(program));
  if (!is_new) return at->second.has_value();
  const auto verdict = compare(program);
  if (!verdict || verdict->status == Status::skipped) return false;
  ++attempts.runs;
  if (!verdict->is_finding()) return false;
  if (is_alike(*verdict, attempts.finding.verdict))
    at->second = verdict;
  else
    others_.emplace(verdict->group(), std::pair(program, *verdict));
  return at->second.has_value();
}

}  // namespace zeroproof::subject
