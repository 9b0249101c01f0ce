#include "props/mutation/case_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>

#include "model/check.h"
#include "props/mutation/case_overlap.h"
#include "props/mutation/event_judges.h"
#include "props/mutation/excuses.h"
#include "props/mutation/rest_bytes.h"
#include "props/run_properties.h"
#include "props/train/baseline_target.h"
#include "props/train/case_orders.h"
#include "props/train/case_worlds.h"
#include "props/train/compare.h"
#include "props/train/generated_program.h"
#include "props/train/run_judge.h"
#include "props/train/run_verdict.h"
#include "props/train/stream_judge.h"

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;
using train::WindowValues;

constexpr double kNormTolerance = 1e-9;  // relative; sums of squares are exact, roots are not

// Each rank that has to refuses its order, no other refuses anything, and those are left waiting.
bool ends_in_disorder(const CaseSpec& spec, const train::CellRun& run) {
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const std::exception_ptr& error = run.ranks[rank].error;
    const auto refusal = error ? train::engine_error_of(error) : std::nullopt;
    const bool is_refused = refusal == EngineErrorId::fetch_order_differs_between_ranks;
    if (is_refused != train::refuses_order(spec, static_cast<int>(rank))) return false;
    if (refusal && !is_refused) return false;
  }
  return std::ranges::all_of(run.findings, [](const sim::Finding& finding) {
    return finding.kind == sim::FindingKind::deadlock;
  });
}

// What the world saw explains the errors that followed.
void judge_run(const CaseSpec& spec, const train::CellRun& run, CaseResult& result) {
  if (spec.reorders != 0) {
    if (ends_in_disorder(spec, run)) return;
    if (!run.has_failed())
      return result.add(
          "R14", fmt::format("rank {} runs its modules in another order, and no rank refuses it",
                             spec.reorders - 1));
  }
  for (const sim::Finding& finding : run.findings)
    result.add(hunt::property_of(finding.kind), finding.text, finding.rank);
  if (!run.findings.empty() || !run.has_failed()) return;
  const std::size_t rank = run.deciding_rank();
  result.add("R1", train::text_of(run.ranks[rank].error), static_cast<int>(rank));
}

// Two engines of one name, which a record takes for one.
bool has_two_lives(const CaseSpec& spec) {
  const auto renews = [](const train::MicroSpec& micro) { return micro.renews != 0; };
  return std::ranges::any_of(spec.micros, renews);
}

void add_all(const CaseSpec& spec, const PropertiesReport& report, CaseResult& result) {
  for (const Finding& finding : report.falsified)
    if (!is_excused(spec, finding.property->number))
      result.add(finding.property->number, finding.text, finding.rank);
}

// The properties that speak about gradients in such a program, the plainest first.
std::vector<std::string_view> gradient_properties(const CaseSpec& spec) {
  std::vector<std::string_view> numbers = {"P26"};
  const auto add_if = [&](bool is_about, std::string_view number) {
    if (is_about) numbers.push_back(number);
  };
  const auto any = [&](auto is_so) { return std::ranges::any_of(spec.micros, is_so); };
  add_if(spec.accumulation > 1 && spec.is_unmanaged == 0, "P27");
  add_if(spec.is_unmanaged != 0, "P33");
  add_if(spec.heads == 2 && any([](const auto& it) { return it.losses == 0; }), "P28");
  add_if(any([](const auto& it) { return it.outstanding != 0; }), "P29");
  add_if(any([](const auto& it) { return it.repeats != 0; }), "P30");
  add_if(any([](const auto& it) { return it.block == 1 || it.block == 3; }), "P34");
  add_if(spec.is_offloaded != 0, "P35");
  add_if(std::ranges::any_of(spec.calls, [](const auto& it) { return it.wrap != 0; }), "P36");
  add_if(spec.is_tiled != 0, "P37");
  add_if(spec.precision == 2, "P23");
  return numbers;
}

std::string text_of(const train::Difference& first) {
  return first.index < 0 ? fmt::format("{} is missing, or of another size", first.name)
                         : fmt::format("{}[{}] is {} and not {}", first.name, first.index,
                                       first.engine, first.baseline);
}

// One kind of values, of all windows.
template <class Keep>
std::optional<std::string> difference(const std::vector<WindowValues>& engine,
                                      const std::vector<WindowValues>& baseline,
                                      const train::TrainCell& cell, Keep keep) {
  const auto kept = [&](const std::vector<WindowValues>& windows) {
    std::vector<WindowValues> all(windows.size());
    for (std::size_t i = 0; i < windows.size(); ++i) keep(windows[i], all[i]);
    return all;
  };
  const train::Comparison comparison = train::compare(kept(engine), kept(baseline), cell);
  if (comparison.is_equal) return std::nullopt;
  return text_of(*comparison.first);
}

std::optional<std::string> norm_difference(const std::vector<WindowValues>& engine,
                                           const std::vector<WindowValues>& baseline) {
  for (std::size_t step = 0; step < std::min(engine.size(), baseline.size()); ++step)
    for (std::size_t i = 0;
         i < std::min(engine[step].outcomes.size(), baseline[step].outcomes.size()); ++i) {
      if (engine[step].outcomes[i].grad_norm.has_value() !=
          baseline[step].outcomes[i].grad_norm.has_value())
        return fmt::format("step {} tells a norm and is skipped, or the other way round", step);
      const double a = engine[step].outcomes[i].grad_norm.value_or(0.0);
      const double b = baseline[step].outcomes[i].grad_norm.value_or(0.0);
      if (!std::isfinite(b) || std::abs(a - b) <= kNormTolerance * std::abs(b)) continue;
      return fmt::format("the norm of step {} is {} and not {}", step, a, b);
    }
  return std::nullopt;
}

}  // namespace

CaseRun::CaseRun(const CaseSpec& spec, std::set<std::string> without)
    : spec_(spec),
      without_(std::move(without)),
      scenario_(train::scenario_of(spec_)),
      cell_(train::cell_of(spec_)) {}

void CaseRun::judge_values(const Fault* fault, Chooser& chooser, CaseResult& result) {
  add_values(fault, chooser, result);
  drop_removed(result);
}

void CaseRun::judge_events(const Fault* fault, Chooser& chooser, CaseResult& result) {
  add_events(fault, chooser, result);
  drop_removed(result);
}

void CaseRun::drop_removed(CaseResult& result) const {
  std::erase_if(result.falsified, [&](const Falsified& one) {
    return without_.contains(std::string(one.property->number));
  });
}

train::TrainCell CaseRun::cell_with(const Fault* fault) const {
  train::TrainCell cell = cell_;
  mutate(fault, cell);
  return cell;
}

const std::vector<WindowValues>& CaseRun::baseline() {
  if (!baseline_) baseline_ = train::run_baseline(scenario_, cell_);
  return *baseline_;
}

void CaseRun::add_values(const Fault* fault, Chooser& chooser, CaseResult& result) {
  const train::TrainCell cell = cell_with(fault);
  scenario_ = train::scenario_of(spec_);  // without the files of another run
  hunt::AccessWatch streams(spec_.world_size(), overlap_rules_of(spec_));
  if (!run_elsewhere(cell, result)) return;
  const train::CellRun run = train::run_ranks(scenario_, cell,
                                              {.collects_values = true,
                                               .first_step = train::windows_elsewhere(scenario_),
                                               .watch = &streams,
                                               .chooser = &chooser});
  ++result.executions;
  result.events = run.steps;
  judge_run(spec_, run, result);
  if (spec_.reorders != 0) return;  // in the middle of what every rank does
  add_all(spec_, streams.races().finish(), result);
  if (!streams.overlap_finding().empty() && !is_excused(spec_, "R20"))
    result.add("R20", streams.overlap_finding());
  if (run.has_failed()) return;
  judge_rest(run, result);
  judge_memory(run, result);
  compare_values(run, result);
}

// What other ranks have trained, and whether it can go on.
bool CaseRun::run_elsewhere(const train::TrainCell& cell, CaseResult& result) const {
  if (train::windows_elsewhere(scenario_) == 0) return true;
  const train::CellRun run = train::run_first_world(scenario_, cell);
  judge_run(spec_, run, result);
  return !run.has_failed();
}

// What stays between two windows is what the engine is made of.
void CaseRun::judge_rest(const train::CellRun& run, CaseResult& result) const {
  const auto most = bytes_at_rest(spec_);
  if (!most) return;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    for (const std::int64_t live : run.ranks[rank].live_bytes)
      if (live > *most)
        result.add(
            "R12",
            fmt::format("{} bytes are live between two windows, and its states and buckets have {}",
                        live, *most),
            static_cast<int>(rank));
}

// The last window does what the one before did, so it leaves nothing more behind.
void CaseRun::judge_memory(const train::CellRun& run, CaseResult& result) const {
  const auto size = static_cast<std::size_t>(spec_.accumulation);
  const std::size_t micros = spec_.micros.size();
  if (spec_.windows() < 3) return;
  if (!std::equal(spec_.micros.end() - static_cast<std::ptrdiff_t>(size), spec_.micros.end(),
                  spec_.micros.begin() + static_cast<std::ptrdiff_t>(micros - 2 * size)))
    return;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    for (const auto* const live : {&run.ranks[rank].live_bytes, &run.ranks[rank].host_bytes})
      if (live->back() > (*live)[live->size() - 2])
        result.add(
            "R12",
            fmt::format("{} bytes are live behind window {}, and {} behind an equal one before",
                        live->back(), live->size() - 1, (*live)[live->size() - 2]),
            static_cast<int>(rank));
}

void CaseRun::compare_values(const train::CellRun& run, CaseResult& result) {
  if (const auto differing = train::differing_ranks(run.ranks)) result.add("P40", *differing);
  const std::vector<WindowValues>& engine = run.ranks[0].windows;
  const auto add_difference = [&](std::string_view number, auto keep) {
    if (const auto found = difference(engine, baseline(), cell_, keep)) result.add(number, *found);
  };
  if (!train::reduces_in_step(*cell_.config)) {
    const auto found = difference(
        engine, baseline(), cell_,
        [](const WindowValues& from, WindowValues& to) { to.gradients = from.gradients; });
    if (found)
      for (const std::string_view number : gradient_properties(spec_)) result.add(number, *found);
  }
  add_difference("R8",
                 [](const WindowValues& from, WindowValues& to) { to.outcomes = from.outcomes; });
  const std::size_t compared = train::records_on_all_ranks(spec_) ? run.ranks.size() : 1;
  for (std::size_t rank = 0; rank < compared; ++rank) compare_records(run, rank, result);
  add_difference("R13",
                 [](const WindowValues& from, WindowValues& to) { to.counters = from.counters; });
  add_difference("R7", [](const WindowValues& from, WindowValues& to) {
    to.parameters = from.parameters;
    to.weights = from.weights;
    // Moments that no step has touched: the engine has zeros, the baseline none.
    for (const FullTensor& state : from.states)
      if (std::ranges::any_of(state.values, [](double value) { return value != 0.0; }))
        to.states.push_back(state);
  });
  if (const auto found = norm_difference(engine, baseline())) result.add("R9", *found);
}

// What a rank recorded, and the rank of the baseline in its place.
void CaseRun::compare_records(const train::CellRun& run, std::size_t rank, CaseResult& result) {
  const std::size_t place = rank / static_cast<std::size_t>(spec_.tensor);
  const auto starts_with = [](std::string_view prefix) {
    return [prefix](const FullTensor& record) { return record.name.starts_with(prefix); };
  };
  const auto is_refusal = starts_with("refused/");
  const auto is_of_bytes = starts_with("bytes");
  const auto add_records = [&](std::string_view number, auto is_about) {
    const auto keep = [&](const std::vector<FullTensor>& from) {
      WindowValues to;
      std::ranges::copy_if(from, std::back_inserter(to.records), is_about);
      return to;
    };
    std::vector<WindowValues> ours;
    std::vector<WindowValues> right;
    for (const WindowValues& window : run.ranks[rank].windows) ours.push_back(keep(window.records));
    for (const WindowValues& window : baseline())
      right.push_back(keep(place == 0 ? window.records : window.records_of_others.at(place - 1)));
    const train::Comparison comparison = train::compare(ours, right, cell_);
    if (!comparison.is_equal)
      result.add(number, text_of(*comparison.first), static_cast<int>(rank));
  };
  add_records("R6", [&](const FullTensor& it) { return !is_refusal(it) && !is_of_bytes(it); });
  add_records("R14", is_refusal);
  add_records("R12", is_of_bytes);
}

void CaseRun::add_events(const Fault* fault, Chooser& chooser, CaseResult& result) {
  const train::TrainCell cell = cell_with(fault);
  scenario_ = train::scenario_of(spec_);
  train::RunJudge judge(scenario_, cell);
  std::deque<EventJudges> judges;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(spec_.world_size()); ++rank)
    judge.rank(rank).listen(judges.emplace_back(spec_, judge.rank(rank).names()));
  if (!run_elsewhere(cell, result)) return;
  const train::CellRun run = train::run_ranks(
      scenario_, cell,
      {.first_step = train::windows_elsewhere(scenario_), .watch = &judge, .chooser = &chooser});
  ++result.executions;
  result.events = run.steps;
  judge_run(spec_, run, result);
  if (!run.findings.empty() || has_two_lives(spec_) || spec_.reorders != 0) return;
  add_all(spec_, judge.finish(run), result);
  for (const EventJudges& one : judges)
    one.for_each_finding(
        [&](std::string_view number, const std::string& text) { result.add(number, text); });
}

}  // namespace zeroproof::mutation
