#include "props/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/conform/deepspeed_conform.h"
#include "props/conform/deepspeed_run.h"
#include "props/conform/program.h"
#include "props/exploration_status.h"
#include "props/replay/trace_paths.h"

namespace zeroproof {
namespace {

constexpr const char* kOurs = "exact";

struct TableSetup {
  PolicyMode mode = PolicyMode::graph_task_callback;
  OrderModel order_model = OrderModel::any_topological;
  std::uint32_t params = 4;
};

class Verification {
 public:
  Verification(const VerifyOptions& options, const VerifyWatch& watch) : watch_(watch) {
    report_.options = options;
  }

  Result<VerifyReport> run() {
    if (auto done = replay_traces(); !done) return tl::unexpected(done.error());
    if (auto done = conform_programs_again(); !done) return tl::unexpected(done.error());
    if (auto done = train_as_recorded(); !done) return tl::unexpected(done.error());
    train_against_baseline();
    if (auto done = explore_our_engine(); !done) return tl::unexpected(done.error());
    if (auto done = explore_exact(); !done) return tl::unexpected(done.error());
    if (auto done = explore_upstream(); !done) return tl::unexpected(done.error());
    if (auto done = hunt_faults(); !done) return tl::unexpected(done.error());
    report_.is_interrupted = is_stopped();
    return std::move(report_);
  }

 private:
  bool is_stopped() const { return watch_.should_stop && watch_.should_stop(); }

  void announce(const std::string& step) const {
    if (watch_.on_step) watch_.on_step(step);
  }

  Result<void> replay_traces() {
    const std::string& folder = report_.options.traces_folder;
    const auto expected = read_expected_findings(folder);
    if (!expected) return tl::unexpected(expected.error());
    const auto paths = trace_paths(folder);
    if (!paths) return tl::unexpected(paths.error());
    Replay replay({}, watch_.should_stop);
    for (const std::string& path : *paths) {
      announce(path);
      if (auto added = replay.add(path); !added) return added;
    }
    report_.replay = replay.finish();
    report_.unexpected = unexpected_lines(report_.replay, folder, *expected);
    report_.expected_findings = expected->size();
    return {};
  }

  // Every trace of a program that we have a port of.
  Result<void> conform_programs_again() {
    for (const TraceReplay& trace : report_.replay.traces) {
      if (!find_program(trace.program) || is_stopped()) continue;
      announce("conform " + trace.program);
      auto outcome = conform(trace.path, {});
      if (!outcome) return tl::unexpected(outcome.error());
      report_.conform.outcomes.push_back(std::move(*outcome));
    }
    return {};
  }

  // Every recorded training run of a scenario that we have a port of, found by the trace of its
  // first rank.
  Result<void> train_as_recorded() {
    for (const TraceReplay& trace : report_.replay.traces) {
      const bool is_first = trace.path.find("_r0.") != std::string::npos;
      if (!is_first || is_stopped() || find_deepspeed_program(trace.program) == nullptr) continue;
      if (!is_training_trace(trace.path).value_or(false)) continue;
      announce("train as recorded " + trace.program);
      const auto ranks = rank_paths(trace.path);
      if (!ranks) return tl::unexpected(ranks.error());
      auto outcome = conform_deepspeed(*ranks);
      if (!outcome) return tl::unexpected(outcome.error());
      report_.deepspeed.outcomes.push_back(std::move(*outcome));
    }
    return {};
  }

  void train_against_baseline() {
    announce("train, pairwise matrix");
    const auto cells = train::matrix_cells(train::MatrixKind::pairwise, {}, {});
    report_.training = train::run_matrix(
        cells, {.checks = {.has_properties = true}, .should_stop = watch_.should_stop});
  }

  // Every scenario in the simulated world, in random orders of ranks and streams.
  Result<void> explore_our_engine() {
    constexpr std::uint64_t kOrders = 4;
    for (const char* stage : {"0", "1", "2", "3"}) {
      for (const train::TrainScenario& scenario : train::scenario_catalogue()) {
        if (is_stopped()) return {};
        const std::string name(scenario.name);
        auto engine_case = train::case_of(name, {{"stage", stage}, {"judge", "streams"}}, "verify");
        if (!engine_case) return tl::unexpected(engine_case.error());
        if (!train::is_applicable(scenario, engine_case->cell)) continue;
        announce(fmt::format("engine, {} stage {}", name, stage));
        train::EngineExplorationOptions options{.engine_case = std::move(*engine_case),
                                                .seed = report_.options.seed,
                                                .minimizes = false};
        options.budget.executions = report_.options.is_quick ? 1 : kOrders;
        auto explored = train::explore_engine(options);
        if (!explored) return tl::unexpected(explored.error());
        report_.engine.push_back(std::move(*explored));
      }
    }
    return {};
  }

  Result<void> explore_exact() {
    for (const OrderModel order_model : {OrderModel::faithful, OrderModel::any_topological}) {
      for (const std::uint32_t params : {4U, 8U}) {
        if (report_.options.is_quick && params > 4) continue;
        const TableSetup setup{.order_model = order_model, .params = params};
        if (auto done = explore_all(kOurs, setup, report_.exact); !done) return done;
      }
    }
    return {};
  }

  Result<void> explore_upstream() {
    std::vector<TableSetup> setups = {{}};
    if (!report_.options.is_quick) {
      setups.push_back({.order_model = OrderModel::faithful});
      setups.push_back({.mode = PolicyMode::count_fallback});
    }
    for (const TableSetup& setup : setups) {
      ExplorationTable& table = report_.upstream.emplace_back();
      for (const PolicyInfo& policy : policy_catalogue()) {
        if (policy.id == kOurs) continue;
        const std::string id(policy.id);
        if (auto done = explore_all(id, setup, table); !done) return done;
      }
    }
    find_not_caught();
    return {};
  }

  Result<void> explore_all(const std::string& policy, const TableSetup& setup,
                           std::vector<ExplorationReport>& reports) {
    for (const ScenarioFile& file : builtin_scenarios()) {
      if (is_stopped()) return {};
      ExplorationOptions options{.scenario = std::string(file.id),
                                 .policy = policy,
                                 .mode = setup.mode,
                                 .order_model = setup.order_model,
                                 .params = setup.params,
                                 .seed = report_.options.seed,
                                 .minimizes = false};
      announce(fmt::format("{} {} {} N={}", options.scenario, policy,
                           order_model_name(setup.order_model), setup.params));
      ExploreWatch watch;
      watch.should_stop = [&] {
        return is_stopped() ? StopRequest::interrupted : StopRequest::none;
      };
      auto explored = explore_scenario(options, watch);
      if (!explored) return tl::unexpected(explored.error());
      reports.push_back(std::move(*explored));
    }
    return {};
  }

  Result<void> hunt_faults() {
    if (!watch_.hunt || is_stopped()) return {};
    announce("mutation");
    auto row = watch_.hunt();
    if (is_stopped()) return {};
    if (!row) return tl::unexpected(row.error());
    report_.mutation = std::move(*row);
    return {};
  }

  void find_not_caught() {
    for (const PolicyInfo& policy : policy_catalogue()) {
      if (policy.id == kOurs) continue;
      const ExplorationTable& table = report_.upstream.front();
      const bool is_caught =
          std::any_of(table.begin(), table.end(), [&](const ExplorationReport& report) {
            return report.options.policy == policy.id && !report.findings.empty();
          });
      if (!is_caught) report_.not_caught.emplace_back(policy.id);
    }
  }

  const VerifyWatch& watch_;
  VerifyReport report_;
};

}  // namespace

bool VerifyReport::has_conformed() const {
  return conform.count(ConformStatus::agreed) == conform.outcomes.size();
}

bool VerifyReport::has_deepspeed_agreed() const {
  return deepspeed.count(ConformStatus::agreed) + deepspeed.count(ConformStatus::explained) ==
         deepspeed.outcomes.size();
}

bool has_held(const train::EngineExplorationReport& report) {
  return report.findings.empty() && report.divergence.empty() && report.executions > 0;
}

bool VerifyReport::has_engine_held() const {
  return !engine.empty() && std::ranges::all_of(engine, [](const auto& report) {
    return zeroproof::has_held(report);
  });
}

bool VerifyReport::has_exact_held() const {
  return !exact.empty() && std::all_of(exact.begin(), exact.end(), [](const auto& report) {
    return status_of(report) == ExplorationStatus::held;
  });
}

bool VerifyReport::has_held() const {
  return has_replay_held() && has_conformed() && has_deepspeed_agreed() && has_trained() &&
         has_engine_held() && has_exact_held() && has_rediscovered() && has_caught_faults() &&
         !is_interrupted;
}

Result<VerifyReport> verify(const VerifyOptions& options, const VerifyWatch& watch) {
  return Verification(options, watch).run();
}

}  // namespace zeroproof
