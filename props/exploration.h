#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/order_count.h"
#include "props/scenario.h"
#include "sim/explorer.h"
#include "sim/protocol/world.h"
#include "sim/schedule.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"
#include "zeroproof/model/result.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

// What to explore, and how.
struct ExplorationOptions {
  std::string scenario;  // id or path of a *.json file
  std::string policy = "exact";
  MakePolicy make_policy = {};  // empty: the policy of that name
  PolicyMode mode = PolicyMode::graph_task_callback;
  OrderModel order_model = OrderModel::any_topological;
  std::uint32_t params = 4;              // N: a multiple of 4, see widen()
  std::string scheduler = "exhaustive";  // see make_scheduler
  std::uint64_t seed = 0;
  Budget budget;
  bool minimizes = true;
};

std::string_view order_model_name(OrderModel order_model);
Result<OrderModel> order_model_of(std::string_view name);

// One execution with everything it said.
struct RecordedRun {
  NameTable names;
  std::vector<HookEvent> events;
  std::vector<Verdict> verdicts;
  std::vector<EngineOutcome> outcomes;
};

// A property that some order falsified.
struct ExplorationFinding {
  const Property* property = nullptr;  // static
  zeroproof::Finding finding;          // of the minimised run: event, text
  std::uint64_t failing_executions = 0;
  Schedule schedule;                // the shortest failing order of the scenario as given
  Scenario minimized;               // the smallest scenario that still fails
  Schedule minimized_schedule;      // names no file: the scenario is `minimized`
  bool is_minimal = false;          // no smaller scenario fails in the same way
  std::uint64_t events_before = 0;  // of the failing run before minimising, up to its end
  std::vector<HookEvent> events;    // of the minimised run
  NameTable names;                  // of `events`
  std::size_t bad_event = 0;        // index into `events`
};

struct ExplorationReport {
  ExplorationOptions options;
  std::string title;
  ExploreEnd end = ExploreEnd::exhausted;
  std::string divergence;  // one line when the end is `diverged`
  std::uint64_t executions = 0;
  std::optional<std::uint64_t> states;
  std::optional<std::uint64_t> transitions;
  std::optional<OrderCount> orders_explored;    // complete orders; known when exhausted
  std::optional<OrderCount> linear_extensions;  // computed from the partial orders
  std::string linear_extensions_reason;         // why not, when absent
  // That a policy of another program raised itself: orders end early by it. Empty for none.
  std::string policy_exception;
  std::vector<Verdict> verdicts;             // one a property of scope explore
  std::vector<ExplorationFinding> findings;  // by property

  // Every order was explored, their number is the computed one, and no property was falsified.
  bool has_held() const;
};

// Runs the scenario under the policy in every order the scheduler picks, with all properties of
// scope explore. Errors: unknown scenario, policy, mode or scheduler, a policy that cannot work in
// that mode, a bad N, a schedule file that cannot be read, a policy command that fails.
Result<ExplorationReport> explore_scenario(const ExplorationOptions& options,
                                           const ExploreWatch& watch = {});

// The options a schedule was made with. Error for settings that are missing or unknown.
Result<ExplorationOptions> options_of(const Schedule& schedule);

// Runs one schedule, under the schedule's policy or one that `make_policy` makes. Error code usage
// or unreadable when it does not fit its scenario.
Result<RecordedRun> run_schedule(const Schedule& schedule, const MakePolicy& make_policy = {});

// The same for a scenario that stands in no file.
Result<RecordedRun> run_schedule(const Schedule& schedule, const Scenario& scenario,
                                 const MakePolicy& make_policy = {});

}  // namespace zeroproof
