#include "props/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "model/check.h"
#include "props/minimize.h"
#include "props/order_counting.h"
#include "props/policy_command/policy_session.h"
#include "props/registry.h"
#include "props/scenario_reduction.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/replay.h"

namespace zeroproof {
namespace {

// Scenarios that are being minimised run at most this often each.
constexpr std::uint64_t kMinimizeExecutions = 20'000;
constexpr std::uint32_t kParamsOfFiles = 4;

ProtocolSetup setup_of(const ExplorationOptions& options) {
  return {options.policy, options.make_policy, options.mode, options.order_model};
}

std::uint32_t index_of(const Property* property) {
  return static_cast<std::uint32_t>(property - all_properties().data());
}

// Leaves of the engine that a path without its output hooks leads to (P16 does not bind them).
std::vector<std::string> bypassing_params(const GraphTaskProgram& task, EngineId engine) {
  std::vector<std::string> params;
  std::vector<bool> is_seen(task.nodes.size(), false);
  std::vector<std::size_t> open = {0};
  bool has_output = false;
  while (!open.empty()) {
    const ProtocolNode& node = task.nodes[open.back()];
    const bool is_new = !is_seen[open.back()];
    is_seen[open.back()] = true;
    open.pop_back();
    if (!is_new || node.engine == engine) {
      has_output |= node.kind == NodeKind::output_hook;
      if (is_new && node.kind == NodeKind::accumulate) params.push_back(node.param);
      continue;
    }
    open.insert(open.end(), node.next.begin(), node.next.end());
  }
  return has_output ? params : std::vector<std::string>();
}

// Every name is interned up front: ids in the order of first use would distinguish orders that
// lead to the same state.
void declare_params(const ProtocolProgram& program, NameTable& names, PropertyRun& properties) {
  for (std::size_t at = 0; at < program.engines.size(); ++at) {
    for (const std::string& param : program.engines[at].params) {
      names.intern(param);
      properties.declare_param(param);
    }
    const EngineId engine{static_cast<std::int32_t>(at)};
    for (const GraphTaskProgram& task : program.tasks) {
      for (const std::string& param : bypassing_params(task, engine)) {
        properties.declare_bypass(names.intern(param));
      }
    }
  }
}

// Falsified beats latent beats held beats not applicable.
int weight(Status status) {
  switch (status) {
    case Status::falsified:
      return 3;
    case Status::latent:
      return 2;
    case Status::held:
      return 1;
    case Status::not_applicable:
      return 0;
  }
  return 0;
}

// What all executions said about each property together.
class VerdictSum {
 public:
  void add(const std::vector<Verdict>& verdicts) {
    if (sum_.empty()) sum_ = verdicts;
    ZP_CHECK(sum_.size() == verdicts.size(), "every execution judges the same properties");
    for (std::size_t at = 0; at < verdicts.size(); ++at) {
      if (weight(verdicts[at].status) > weight(sum_[at].status)) sum_[at] = verdicts[at];
    }
  }

  std::vector<Verdict> take() { return std::move(sum_); }

 private:
  std::vector<Verdict> sum_;
};

class TeeSink final : public EventSink {
 public:
  TeeSink(EventSink& first, std::vector<HookEvent>& kept) : first_(first), kept_(kept) {}
  void on_event(const HookEvent& event) override {
    kept_.push_back(event);
    first_.on_event(event);
  }

 private:
  EventSink& first_;
  std::vector<HookEvent>& kept_;
};

// Runs the program once under the chooser; the properties watch.
std::vector<Verdict> judge_once(const ProtocolProgram& program, const ProtocolSetup& setup,
                                Chooser& chooser) {
  NameTable names;
  PropertyRun properties(Scope::explore, names);
  declare_params(program, names, properties);
  ProtocolWorld world(program, setup, names, properties);
  world.set_watcher_state([&](std::string& bytes) { properties.append_state(bytes); });
  world.run(chooser);
  properties.finish();
  return properties.verdicts();
}

Outcome outcome_of(const std::vector<Verdict>& verdicts) {
  Outcome outcome;
  for (const Verdict& verdict : verdicts) {
    if (verdict.status != Status::falsified) continue;
    const std::uint64_t events = verdict.findings.empty() ? 0 : verdict.findings.front().lc;
    outcome.falsified.push_back({.property = index_of(verdict.property), .events = events});
  }
  return outcome;
}

RecordedRun record_run(const ProtocolProgram& program, const ProtocolSetup& setup,
                       Chooser& chooser) {
  RecordedRun run;
  PropertyRun properties(Scope::explore, run.names);
  declare_params(program, run.names, properties);
  TeeSink sink(properties, run.events);
  ProtocolWorld world(program, setup, run.names, sink);
  world.run(chooser);
  properties.finish();
  run.verdicts = properties.verdicts();
  run.outcomes = world.outcomes();
  return run;
}

Schedule schedule_for(const ExplorationOptions& options, Choices choices) {
  return {.scenario = options.scenario,
          .settings = {{"policy", options.policy},
                       {"mode", std::string(policy_mode_name(options.mode))},
                       {"order_model", std::string(order_model_name(options.order_model))},
                       {"N", std::to_string(options.params)}},
          .seed = options.seed,
          .choices = std::move(choices)};
}

// All properties that some order of the program falsifies, with the shortest order of each.
std::map<std::uint32_t, Choices> failing_choices(const ProtocolProgram& program,
                                                 const ProtocolSetup& setup) {
  ExhaustiveScheduler scheduler;
  const auto run = [&](Chooser& chooser) {
    return outcome_of(judge_once(program, setup, chooser));
  };
  std::map<std::uint32_t, Choices> choices;
  for (const FailingProperty& failing :
       explore(run, scheduler, {.executions = kMinimizeExecutions}).findings) {
    choices[failing.property] = failing.shortest.choices;
  }
  return choices;
}

class Explorer {
 public:
  Explorer(ExplorationOptions options, Scenario scenario)
      : scenario_(std::move(scenario)), setup_(setup_of(options)) {
    report_.options = std::move(options);
    report_.title = scenario_.title;
  }

  ExplorationReport run(Scheduler& scheduler, const ExploreWatch& watch) {
    const auto execute = [&](Chooser& chooser) {
      const std::vector<Verdict> verdicts = judge_once(scenario_.program, setup_, chooser);
      sum_.add(verdicts);
      return outcome_of(verdicts);
    };
    const ExploreResult result = explore(execute, scheduler, report_.options.budget, watch);
    summarize(result);
    if (report_.options.minimizes && !result.findings.empty()) minimize_scenario(result.findings);
    for (const FailingProperty& failing : result.findings) add_finding(failing);
    return std::move(report_);
  }

 private:
  void summarize(const ExploreResult& result) {
    report_.end = result.end;
    report_.divergence = result.divergence;
    report_.executions = result.executions;
    report_.states = result.progress.scheduler.states;
    report_.transitions = result.progress.scheduler.transitions;
    report_.orders_explored = result.progress.scheduler.complete_orders;
    const auto counted = count_program_orders(scenario_.program, setup_.order_model);
    if (counted) {
      report_.linear_extensions = *counted;
    } else {
      report_.linear_extensions_reason = counted.error().text;
    }
    report_.verdicts = sum_.take();
  }

  void add_finding(const FailingProperty& failing) {
    ExplorationFinding finding;
    finding.property = &all_properties()[failing.property];
    finding.failing_executions = failing.failing_executions;
    finding.events_before = failing.shortest.events;
    finding.schedule = schedule_for(report_.options, failing.shortest.choices);
    finding.minimized = scenario_;
    finding.minimized_schedule = finding.schedule;
    if (minimized_) {
      finding.minimized = minimized_->scenario;
      finding.is_minimal = minimized_->is_minimal;
      finding.minimized_schedule.scenario = minimized_->scenario.id;
      finding.minimized_schedule.settings["N"] = std::to_string(kParamsOfFiles);
      finding.minimized_schedule.choices = minimized_->choices.at(failing.property);
    }
    rerun(failing.property, finding);
    report_.findings.push_back(std::move(finding));
  }

  // The smallest scenario in which everything that failed here still fails: with one property
  // alone, another bug could take the place of the one found. Starts from the scenario as it is
  // in its file when that fails too, since it is smaller.
  void minimize_scenario(const std::vector<FailingProperty>& failing) {
    const auto fails = [&](const Scenario& candidate) {
      const auto choices = failing_choices(candidate.program, setup_);
      return std::all_of(failing.begin(), failing.end(),
                         [&](const FailingProperty& f) { return choices.contains(f.property); });
    };
    Scenario start = scenario_;
    if (!fails(start)) return;  // too large to search in full: shown as found
    if (const auto base = load_scenario(report_.options.scenario); base && fails(*base)) {
      start = *base;
    }
    auto minimized = minimize(std::move(start), smaller_scenarios, fails);
    minimized.value.id += "-minimized";
    auto choices = failing_choices(minimized.value.program, setup_);
    minimized_ = MinimizedScenario{std::move(minimized.value), minimized.stats.is_minimal,
                                   std::move(choices)};
  }

  void rerun(std::uint32_t property, ExplorationFinding& finding) {
    ReplayScheduler replay(finding.minimized_schedule.choices);
    replay.new_execution();
    RecordedRun run = record_run(finding.minimized.program, setup_, replay);
    const auto verdict =
        std::find_if(run.verdicts.begin(), run.verdicts.end(),
                     [&](const Verdict& v) { return index_of(v.property) == property; });
    ZP_CHECK(verdict != run.verdicts.end() && verdict->status == Status::falsified,
             "a finding fails again when its schedule is replayed");
    finding.finding = verdict->findings.front();
    const auto bad = std::find_if(run.events.begin(), run.events.end(),
                                  [&](const HookEvent& e) { return e.lc == finding.finding.lc; });
    finding.bad_event = bad == run.events.end()
                            ? run.events.size() - 1
                            : static_cast<std::size_t>(bad - run.events.begin());
    finding.events = std::move(run.events);
    finding.names = std::move(run.names);
  }

  struct MinimizedScenario {
    Scenario scenario;
    bool is_minimal = false;
    std::map<std::uint32_t, Choices> choices;  // the shortest failing order by property
  };

  Scenario scenario_;
  ProtocolSetup setup_;
  ExplorationReport report_;
  VerdictSum sum_;
  std::optional<MinimizedScenario> minimized_;
};

Result<Scenario> scenario_for(const ExplorationOptions& options) {
  if (options.params < kParamsOfFiles || options.params % kParamsOfFiles != 0) {
    return fail(ErrorCode::usage,
                fmt::format("N={}: the scenario files have {} parameters, so N is a multiple of {}",
                            options.params, kParamsOfFiles, kParamsOfFiles));
  }
  if (!options.make_policy)
    if (const auto policy = make_policy(options.policy, options.mode); !policy)
      return tl::unexpected(policy.error());
  auto scenario = load_scenario(options.scenario);
  if (!scenario) return scenario;
  return widen(*scenario, options.params / kParamsOfFiles);
}

}  // namespace

std::string_view order_model_name(OrderModel order_model) {
  return order_model == OrderModel::faithful ? "faithful" : "any_topological";
}

Result<OrderModel> order_model_of(std::string_view name) {
  if (name == "faithful") return OrderModel::faithful;
  if (name == "any_topological") return OrderModel::any_topological;
  return fail(ErrorCode::usage,
              fmt::format("unknown order model '{}': use faithful or any_topological", name));
}

bool ExplorationReport::has_held() const {
  return end == ExploreEnd::exhausted && findings.empty() && orders_explored.has_value() &&
         (!linear_extensions || *orders_explored == *linear_extensions);
}

Result<ExplorationReport> explore_scenario(const ExplorationOptions& options,
                                           const ExploreWatch& watch) {
  auto scenario = scenario_for(options);
  if (!scenario) return tl::unexpected(scenario.error());
  auto scheduler = make_scheduler(options.scheduler, options.seed);
  if (!scheduler) return tl::unexpected(scheduler.error());
  try {
    return Explorer(options, *scenario).run(**scheduler, watch);
  } catch (const policy_command::PolicyFailure& failure) {
    if (!failure.is_nondeterminism) return tl::unexpected(failure.error);
    return ExplorationReport{.options = options,
                             .title = scenario->title,
                             .end = ExploreEnd::diverged,
                             .divergence = failure.error.text};
  }
}

Result<ExplorationOptions> options_of(const Schedule& schedule) {
  ExplorationOptions options{.scenario = schedule.scenario};
  options.seed = schedule.seed;
  for (const auto& [key, value] : schedule.settings) {
    if (key == "policy") {
      options.policy = policy_id(value);
    } else if (key == "mode") {
      const auto mode = policy_mode_of(value);
      if (!mode) return tl::unexpected(mode.error());
      options.mode = *mode;
    } else if (key == "order_model" || key == "latitude") {
      const auto order_model = order_model_of(value);
      if (!order_model) return tl::unexpected(order_model.error());
      options.order_model = *order_model;
    } else if (key == "N") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), options.params);
      if (error != std::errc() || end != value.data() + value.size()) {
        return fail(ErrorCode::usage, fmt::format("schedule setting N={} is no number", value));
      }
    } else {
      return fail(ErrorCode::usage,
                  fmt::format("unknown schedule setting '{}={}': was it made by a later version?",
                              key, value));
    }
  }
  return options;
}

Result<RecordedRun> run_schedule(const Schedule& schedule, const MakePolicy& make_policy) {
  auto options = options_of(schedule);
  if (!options) return tl::unexpected(options.error());
  options->make_policy = make_policy;
  const auto scenario = scenario_for(*options);
  if (!scenario) return tl::unexpected(scenario.error());
  return run_schedule(schedule, *scenario, make_policy);
}

Result<RecordedRun> run_schedule(const Schedule& schedule, const Scenario& scenario,
                                 const MakePolicy& make_policy) {
  auto options = options_of(schedule);
  if (!options) return tl::unexpected(options.error());
  options->make_policy = make_policy;
  ReplayScheduler replay(schedule.choices);
  replay.new_execution();
  RecordedRun run;
  bool was_cut = false;
  try {
    run = record_run(scenario.program, setup_of(*options), replay);
  } catch (const ExecutionCut&) {
    was_cut = true;
  } catch (const policy_command::PolicyFailure& failure) {
    return tl::unexpected(failure.error);
  }
  replay.end_execution({.was_cut = was_cut, .final_state = std::nullopt});
  if (const auto divergence = replay.divergence()) {
    return fail(ErrorCode::usage, fmt::format("the schedule does not fit scenario '{}': {}",
                                              scenario.id, *divergence));
  }
  return run;
}

}  // namespace zeroproof
