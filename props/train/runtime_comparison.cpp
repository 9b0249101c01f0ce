#include "props/train/runtime_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string_view>
#include <utility>

#include "props/train/compare.h"
#include "props/train/rank_tokens.h"
#include "props/train/scenario.h"
#include "sim/fingerprint.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::train {
namespace {

void add_tensors(const std::vector<FullTensor>& tensors, StateBytes& bytes) {
  bytes.add(tensors.size());
  for (const FullTensor& tensor : tensors) {
    bytes.add(tensor.name).add(tensor.values.size());
    for (const double value : tensor.values) bytes.add(std::bit_cast<std::uint64_t>(value));
  }
}

void add_window(const WindowValues& window, StateBytes& bytes) {
  for (const auto* tensors : {&window.gradients, &window.parameters, &window.weights,
                              &window.states, &window.counters, &window.records})
    add_tensors(*tensors, bytes);
  for (const StepOutcome& outcome : window.outcomes) bytes.add(outcome.is_applied ? 1 : 0);
}

struct Watched {
  RankTokens tokens;
  CellRun run;
};

std::uint64_t count_lines(const std::string& text) {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return line;
}

std::string token_difference(std::size_t rank, std::string_view sim, std::string_view host) {
  for (std::uint64_t token = 1;; ++token) {
    const std::string_view ours = take_line(sim);
    const std::string_view theirs = take_line(host);
    if (ours != theirs)
      return fmt::format("rank {}, token {}: '{}' simulated, '{}' on the host", rank, token, ours,
                         theirs);
  }
}

std::uint64_t count_values(const WindowValues& window) {
  std::uint64_t count = 0;
  for (const auto* tensors : {&window.gradients, &window.parameters, &window.weights,
                              &window.states, &window.counters, &window.records})
    for (const FullTensor& tensor : *tensors) count += tensor.values.size();
  return count;
}

std::string error_text(const RankRun& run) {
  return run.error ? text_of(run.error) : std::string("no error");
}

// The first tensor in which two runs of a rank differ; they do.
std::string value_difference(std::size_t rank, const RankRun& sim, const RankRun& host) {
  TrainCell exact;
  const Comparison comparison = compare(sim.windows, host.windows, exact);
  if (comparison.first)
    return fmt::format("rank {}: {} differs: {} simulated, {} on the host", rank,
                       comparison.first->name, comparison.first->engine,
                       comparison.first->baseline);
  return fmt::format("rank {}: outcomes of steps differ", rank);
}

std::string difference_of(const Watched& sim, const Watched& host) {
  for (std::size_t rank = 0; rank < sim.run.ranks.size(); ++rank) {
    const RankRun& ours = sim.run.ranks[rank];
    const RankRun& theirs = host.run.ranks[rank];
    if (error_text(ours) != error_text(theirs))
      return fmt::format("rank {}: {} simulated, {} on the host", rank, error_text(ours),
                         error_text(theirs));
    if (sim.tokens.of(rank) != host.tokens.of(rank))
      return token_difference(rank, sim.tokens.of(rank), host.tokens.of(rank));
    if (sim.run.nodes[rank] != host.run.nodes[rank])
      return fmt::format("rank {}: other choices of nodes on the host", rank);
    CellRun one;
    CellRun other;
    one.ranks = {ours};
    other.ranks = {theirs};
    if (values_of(one) != values_of(other)) return value_difference(rank, ours, theirs);
  }
  return {};
}

// The same nodes as in the simulated run, on threads.
void run_on_host(const TrainScenario& scenario, const EngineCase& engine_case, const CellRun& sim,
                 Watched& host) {
  TrainCell cell = engine_case.cell;
  cell.sim.reset();
  CellRunOptions options;
  options.collects_values = engine_case.judge != Judge::events;
  options.watch = &host.tokens;
  std::vector<std::unique_ptr<ReplayScheduler>> nodes;
  if (engine_case.nodes != NodeOrder::faithful) {
    for (const Choices& choices : sim.nodes) {
      nodes.push_back(std::make_unique<ReplayScheduler>(choices, ReplayFit::lenient));
      options.node_choosers.push_back(nodes.back().get());
    }
  }
  host.run = run_ranks(scenario, cell, options);
}

}  // namespace

Fingerprint values_of(const CellRun& run) {
  StateBytes bytes;
  for (const RankRun& rank : run.ranks) {
    bytes.add(rank.windows.size()).add(std::bit_cast<std::uint64_t>(rank.loss_scale));
    for (const WindowValues& window : rank.windows) add_window(window, bytes);
  }
  return bytes.fingerprint();
}

RuntimeComparison compare_runtimes(const EngineCase& engine_case, Chooser& chooser) {
  const TrainScenario& scenario = **find_scenario(engine_case.cell.scenario);
  const int ranks = engine_case.cell.world_size;
  const bool is_stage0 = engine_case.cell.stage == 0;
  Watched sim{RankTokens(ranks, is_stage0), {}};
  sim.run = run_ranks(scenario, engine_case.cell,
                      {.collects_values = engine_case.judge != Judge::events,
                       .watch = &sim.tokens,
                       .chooser = &chooser,
                       .nodes = engine_case.nodes});
  RuntimeComparison result;
  for (std::size_t rank = 0; rank < sim.run.ranks.size(); ++rank) {
    result.tokens += count_lines(sim.tokens.of(rank));
    result.node_choices += sim.run.nodes[rank].size();
    for (const WindowValues& window : sim.run.ranks[rank].windows)
      result.values += count_values(window);
  }
  if (sim.run.findings.empty()) {
    Watched host{RankTokens(ranks, is_stage0), {}};
    run_on_host(scenario, engine_case, sim.run, host);
    result.difference = difference_of(sim, host);
  } else {
    result.difference = "not run on the host: " + sim.run.findings.front().text;
  }
  result.simulated = std::move(sim.run);
  return result;
}

}  // namespace zeroproof::train
