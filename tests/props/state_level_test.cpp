// The state level of replay over the bundled traces, and over the same traces with one recorded
// value changed in memory.
#include "props/replay/state_level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

constexpr const char* kTraces = ZP_SOURCE_DIR "/tests/traces/";

std::vector<std::string> traces_under(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kTraces + folder)) {
    if (entry.path().extension() == ".gz") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// A trace in memory, so that a test can change it.
struct LoadedTrace {
  explicit LoadedTrace(const std::string& path) {
    auto reader = TraceReader::open(path, names);
    if (!reader) throw std::runtime_error(reader.error().text);
    if (!reader->header().policy.empty()) policy = reader->header().policy;
    if (!reader->header().mode.empty()) mode = policy_mode_of(reader->header().mode).value();
    for (auto record = reader->next(); record && *record; record = reader->next()) {
      if (const auto* param = std::get_if<ParamRecord>(&(*record)->body)) {
        params.push_back(param->name);
      }
      if (const HookEvent* event = (*record)->event()) events.push_back(*event);
    }
  }

  StateReport replay(const std::string& with_policy) const {
    auto level = StateLevel::make(with_policy, mode, names).value();
    for (const std::string& param : params) level.declare_param(param);
    for (const HookEvent& event : events) level.on_event(event);
    return level.finish();
  }
  StateReport replay() const { return replay(policy); }

  // The first event of this kind from the middle of the trace on.
  HookEvent& manager_event(EventKind kind, std::string_view method) {
    const auto middle = events.begin() + static_cast<std::ptrdiff_t>(events.size() / 2);
    const auto found = std::find_if(middle, events.end(), [&](const HookEvent& event) {
      return event.kind == kind && event.manager && names.text(event.name) == method;
    });
    if (found == events.end()) throw std::runtime_error("no such manager event");
    return *found;
  }

  NameTable names;
  std::string policy = "deepspeed-0.18.7";
  PolicyMode mode = PolicyMode::graph_task_callback;
  std::vector<std::string> params;
  std::vector<HookEvent> events;
};

std::string script(const std::string& name) {
  return std::string(kTraces) + "manager-scripts/" + name + ".jsonl.gz";
}
std::string recording(const std::string& name) {
  return std::string(kTraces) + "deepspeed-edaa7221-cuda/" + name + ".jsonl.gz";
}

class StateLevelOver : public ::testing::TestWithParam<const char*> {};

TEST_P(StateLevelOver, Matches_every_recorded_manager_call) {
  std::uint64_t calls = 0;
  for (const std::string& path : traces_under(GetParam())) {
    const LoadedTrace trace(path);
    const StateReport report = trace.replay();
    EXPECT_EQ(report.matched, report.calls) << path;
    EXPECT_FALSE(report.first_mismatch) << path << ": " << report.first_mismatch->text;
    const auto recorded =
        std::count_if(trace.events.begin(), trace.events.end(),
                      [](const HookEvent& e) { return e.kind == EventKind::bhs_call; });
    EXPECT_EQ(report.calls, static_cast<std::uint64_t>(recorded)) << path;
    EXPECT_EQ(report.is_applicable(), path.find("__z0_") == std::string::npos) << path;
    calls += report.calls;
  }
  EXPECT_GT(calls, 100U);
}

INSTANTIATE_TEST_SUITE_P(Bundled, StateLevelOver,
                         ::testing::Values("deepspeed-edaa7221-cuda", "manager-scripts"));

// One field of the recorded state, how to change it and what a mismatch calls it.
struct FieldChange {
  const char* name;
  std::function<void(BackwardState&)> apply;
};

const std::vector<FieldChange>& field_changes() {
  static const std::vector<FieldChange> changes = {
      {"remaining_grad_acc_hooks", [](BackwardState& s) { s.remaining_hooks += 7; }},
      {"len(_grad_acc_post_hooks)", [](BackwardState& s) { s.post_hooks += 7; }},
      {"backward_active_depth", [](BackwardState& s) { s.active_depth += 7; }},
      {"backward_seen_this_step",
       [](BackwardState& s) { s.is_backward_seen_this_step = !s.is_backward_seen_this_step; }},
      {"epilogue_ran_this_backward",
       [](BackwardState& s) { s.ran_epilogue_this_backward = !s.ran_epilogue_this_backward; }},
      {"hooks_fired_this_backward", [](BackwardState& s) { s.hooks_fired += 7; }},
      {"max_expected_hooks_seen", [](BackwardState& s) { s.max_expected_hooks += 7; }},
      {"post_backward_callback_queued",
       [](BackwardState& s) { s.is_callback_queued = !s.is_callback_queued; }},
      {"post_backward_callback_graph_task_id",
       [](BackwardState& s) { s.callback_graph_task.value += 7; }},
  };
  return changes;
}

TEST(StateLevel, Names_the_changed_field_and_both_values_at_its_event) {
  for (const EventKind kind : {EventKind::bhs_call, EventKind::bhs_return}) {
    for (const FieldChange& change : field_changes()) {
      LoadedTrace trace(recording("mlp__z2_fp32_w2_r0"));
      HookEvent& event = trace.manager_event(kind, "update_hook_state_and_maybe_run_epilogue");
      change.apply(*event.manager);
      const StateReport report = trace.replay();
      ASSERT_TRUE(report.first_mismatch) << change.name;
      EXPECT_EQ(report.first_mismatch->lc, event.lc);
      EXPECT_LT(report.matched, report.calls);
      const std::string& text = report.first_mismatch->text;
      EXPECT_NE(text.find(std::string(": ") + change.name + " is "), std::string::npos) << text;
      EXPECT_NE(text.find("in the recording, "), std::string::npos) << text;
      EXPECT_NE(text.find(" derived"), std::string::npos) << text;
    }
  }
}

TEST(StateLevel, Shows_the_recorded_and_the_derived_value) {
  LoadedTrace trace(script("manager_pr7886_callback_1080"));
  HookEvent& event = trace.manager_event(EventKind::bhs_return, "enter_backward");
  const int derived = event.manager->active_depth;
  event.manager->active_depth = 41;
  const StateReport report = trace.replay();
  ASSERT_TRUE(report.first_mismatch);
  EXPECT_EQ(report.first_mismatch->text,
            "after enter_backward: backward_active_depth is 41 in the recording, " +
                std::to_string(derived) + " derived");
}

// Without the word of the recorder the first forward seems to find a manager that never was.
TEST(StateLevel, Begins_in_the_middle_of_a_run_with_the_state_that_was_recorded) {
  LoadedTrace trace(recording("mlp__z2_fp32_w2_r0"));
  const HookEvent& reset = trace.manager_event(EventKind::bhs_call, "reset_for_new_step");
  const auto lc = reset.lc;
  std::erase_if(trace.events, [&](const HookEvent& event) { return event.lc < lc; });
  EXPECT_TRUE(trace.replay().first_mismatch);

  HookEvent mark{};
  mark.kind = EventKind::mark;
  mark.name = trace.names.intern("recorded_step:1");
  trace.events.insert(trace.events.begin(), mark);
  const StateReport report = trace.replay();
  EXPECT_FALSE(report.first_mismatch);
  EXPECT_GT(report.calls, 20U);
  EXPECT_EQ(report.matched, report.calls);
}

TEST(StateLevel, Finds_a_changed_result) {
  LoadedTrace trace(recording("mlp__z2_fp32_w2_r0"));
  HookEvent& event =
      trace.manager_event(EventKind::bhs_return, "should_refresh_expected_hook_count");
  event.returned = !event.returned.value();
  const StateReport report = trace.replay();
  ASSERT_TRUE(report.first_mismatch);
  EXPECT_EQ(report.first_mismatch->lc, event.lc);
  EXPECT_NE(report.first_mismatch->text.find("returns"), std::string::npos);
}

TEST(StateLevel, Finds_a_manager_call_that_is_missing) {
  LoadedTrace trace(recording("mlp__z2_fp32_w2_r0"));
  HookEvent& nested = trace.manager_event(EventKind::bhs_call, "queue_post_backward_callback");
  const std::uint64_t call = nested.lc;
  std::erase_if(trace.events, [&](const HookEvent& e) { return e.lc == call || e.lc == call + 1; });
  const StateReport report = trace.replay();
  ASSERT_TRUE(report.first_mismatch);
  EXPECT_NE(report.first_mismatch->text.find("the policy calls queue_post_backward_callback"),
            std::string::npos)
      << report.first_mismatch->text;
}

TEST(StateLevel, Tells_the_versions_of_the_manager_apart) {
  const LoadedTrace newer(script("manager_pr7886_callback_1080"));
  EXPECT_TRUE(newer.replay("deepspeed-0.18.5").first_mismatch);
  const LoadedTrace recovering(script("manager_pr8245_fallback_1207"));
  EXPECT_TRUE(recovering.replay("deepspeed-0.18.7").first_mismatch);
}

// `z12.backward_epilogue` stays: stage 1 runs it at micro-batches without a reduction, too.
TEST(StateLevel, Takes_the_epilogue_flag_from_the_epilogue_of_the_partitions_only) {
  LoadedTrace trace(recording("mlp__z2_fp32_w2_r0"));
  const auto is_epilogue = [&](const HookEvent& e) {
    return e.kind == EventKind::engine_return &&
           trace.names.text(e.name) == "z12.independent_gradient_partition_epilogue";
  };
  ASSERT_GT(std::erase_if(trace.events, is_epilogue), 0U);
  const StateReport report = trace.replay();
  ASSERT_TRUE(report.first_mismatch);
  EXPECT_NE(report.first_mismatch->text.find("epilogue_ran_this_backward"), std::string::npos);
}

TEST(StateLevel, Needs_a_policy_with_a_manager) {
  const NameTable names;
  const auto unknown = StateLevel::make("pr9999", PolicyMode::graph_task_callback, names);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::usage);
  EXPECT_NE(unknown.error().text.find("pr9999"), std::string::npos);
  for (const char* policy : {"deepspeed-0.18.3", "exact"}) {
    const auto level = StateLevel::make(policy, PolicyMode::graph_task_callback, names);
    ASSERT_FALSE(level) << policy;
    EXPECT_NE(level.error().text.find("no hook-state manager"), std::string::npos);
  }
}

// Two engines whose calls alternate: one manager for both would count to two.
TEST(StateLevel, Keeps_a_manager_for_each_engine) {
  NameTable names;
  auto level = StateLevel::make("deepspeed-0.18.7", PolicyMode::graph_task_callback, names).value();
  std::uint64_t lc = 0;
  const auto write = [&](EventKind kind, std::int32_t engine, int depth) {
    HookEvent event;
    event.kind = kind;
    event.lc = ++lc;
    event.name = names.intern("enter_backward");
    event.engine = EngineId{engine};
    event.manager = BackwardState{};
    event.manager->post_hooks = 1;
    event.manager->active_depth = depth;
    event.manager->is_backward_seen_this_step = depth > 0;
    level.on_event(event);
  };
  for (int depth = 0; depth < 3; ++depth) {
    for (const std::int32_t engine : {0, 1}) {
      write(EventKind::bhs_call, engine, depth);
      write(EventKind::bhs_return, engine, depth + 1);
    }
  }
  const StateReport report = level.finish();
  EXPECT_EQ(report.calls, 6U);
  EXPECT_EQ(report.matched, 6U) << report.first_mismatch->text;
}

}  // namespace
}  // namespace zeroproof
