// Each rule of the reference walker: the events of a healthy run are changed so that they break it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "props/reference/methods.h"
#include "tests/props/reference_run.h"

namespace zeroproof::reference {
namespace {

using Kind = EventKind;
using Change = std::function<void(RecordedRun& run)>;

struct RuleRow {
  Rule rule;
  int stage;
  std::string_view scenario;
  Change change;
  std::function<void(World& world)> configure = {};  // what the reference believes instead
};

// A call without an end.
void insert_call(RecordedRun& run, std::string_view method, std::size_t place,
                 std::string_view parameter = "") {
  HookEvent call = run.at(Kind::engine_call);
  call.name = run.names.intern(method);
  if (!parameter.empty()) call.param = run.names.intern(parameter);
  if (!parameter.empty()) call.params = {call.param};
  run.insert_before(place, call);
}

std::vector<RuleRow> gradient_rows() {
  return {
      {Rule::gradient_due, 2, "plain",
       [](RecordedRun& run) {
         run.drop_all(Kind::param_post_acc);
         run.drop_all(Kind::engine_call, "grad_hook");
       }},
      {Rule::gradient_reduced, 2, "plain", [](RecordedRun& run) { run.drop(Kind::bucket_flush); }},
      {Rule::gradient_once, 3, "plain", [](RecordedRun& run) { run.repeat(Kind::bucket_add); }},
      {Rule::gradient_dtype, 2, "plain",
       [](RecordedRun& run) { run.at(Kind::bucket_add).name = run.names.intern("float16"); }},
      {Rule::gradient_dtype, 2, "plain",
       [](RecordedRun& run) { run.at(Kind::bucket_add).numel = 1; }},
      {Rule::bucket_contents, 3, "plain",
       [](RecordedRun& run) { run.at(Kind::bucket_flush).params.pop_back(); }},
      {Rule::bucket_room, 3, "plain",
       [](RecordedRun& run) {
         HookEvent flush = run.at(Kind::bucket_flush);
         const HookEvent& first = run.at(Kind::bucket_add);
         flush.params = {first.param};
         flush.numel = first.numel;
         run.insert_before(run.find(Kind::bucket_add, "", 1), flush);
       }},
      {Rule::bucket_boundary, 1, "gas2", [](RecordedRun&) {},
       [](World& world) { world.config.gradient_accumulation_steps = 3; }},
      {Rule::bucket_boundary, 0, "gas2", [](RecordedRun&) {},
       [](World& world) { world.config.gradient_accumulation_steps = 3; }},
      {Rule::bucket_boundary, 1, "plain",
       [](RecordedRun& run) {
         insert_call(run, calls::kNoSync, run.find(Kind::engine_call, calls::kEpilogue));
       }},
      {Rule::bucket_boundary, 3, "plain",
       [](RecordedRun& run) { run.drop_all(Kind::engine_call, "engine.backward_epilogue"); }},
  };
}

std::vector<RuleRow> reduction_rows() {
  return {
      {Rule::reduce_operation, 2, "plain", [](RecordedRun&) {},
       [](World& world) { world.config.use_multi_rank_bucket_allreduce = false; }},
      {Rule::reduce_operation, 3, "plain", [](RecordedRun&) {},
       [](World& world) { world.config.reduce_scatter = false; }},
      {Rule::reduce_bytes, 2, "plain",
       [](RecordedRun& run) { run.at(Kind::coll_issue, "all_reduce").bytes += 4; }},
      {Rule::reduce_bytes, 0, "plain", [](RecordedRun&) {},
       [](World& world) { world.config.communication_data_type = DType::float16; }},
      {Rule::reduce_pieces, 3, "plain",
       [](RecordedRun& run) { run.repeat(Kind::coll_issue, "reduce_scatter"); }},
      {Rule::reduce_once, 2, "plain",
       [](RecordedRun& run) { run.repeat(Kind::engine_return, "engine.backward_epilogue"); },
       [](World& world) { world.unseen.differentiates_inside = false; }},
      {Rule::step_agreement, 3, "plain",
       [](RecordedRun& run) {
         HookEvent ask = run.at(Kind::coll_issue, "all_reduce");
         run.insert_before(run.find(Kind::mark, "overflow"), ask);
       }},
      {Rule::step_gathers, 2, "plain",
       [](RecordedRun& run) { run.drop(Kind::coll_issue, "all_gather"); }},
      {Rule::forward_silent, 1, "plain",
       [](RecordedRun& run) {
         const HookEvent sent = run.at(Kind::coll_issue);
         run.insert_before(run.find(Kind::engine_call, "engine.forward_epilogue"), sent);
       }},
      {Rule::collective_empty, 2, "plain",
       [](RecordedRun& run) { run.at(Kind::coll_issue, "all_reduce").bytes = 0; }},
  };
}

std::vector<RuleRow> fetch_rows() {
  return {
      {Rule::gather_once, 3, "plain",
       [](RecordedRun& run) { run.repeat(Kind::zparam_gather_begin); }},
      {Rule::gather_needed, 3, "plain",
       [](RecordedRun& run) { run.at(Kind::zparam_gather_begin).params.pop_back(); }},
      {Rule::gather_ahead, 3, "plain", [](RecordedRun&) {},
       [](World& world) { world.config.stage3_prefetch_bucket_size = 1000; }},
      {Rule::prefetch_bound, 3, "plain", [](RecordedRun&) {},
       [](World& world) { world.config.stage3_max_live_parameters = 30; }},
      {Rule::gather_bytes, 3, "plain",
       [](RecordedRun& run) { run.at(Kind::coll_issue, "all_gather").bytes += 8; }},
      {Rule::gather_finished, 3, "plain",
       [](RecordedRun& run) { run.drop(Kind::coll_complete, "all_gather"); }},
      {Rule::order_begun, 3, "plain",
       [](RecordedRun& run) {
         run.drop(Kind::engine_call, "coord.reset_step");
         run.drop(Kind::engine_return, "coord.reset_step");
       }},
      {Rule::order_left, 3, "plain",
       [](RecordedRun& run) {
         for (HookEvent& event : run.events)
           if (event.lc > 300 && run.names.text(event.name) == "l2" &&
               event.kind == Kind::zmod_fetch)
             event.name = run.names.intern("l1");
       }},
      {Rule::order_kept, 3, "plain",
       [](RecordedRun& run) {
         insert_call(run, calls::kInvalidate, run.find(Kind::gt_begin, "", 2));
       }},
      {Rule::order_kept, 3, "plain",
       [](RecordedRun& run) {
         insert_call(run, calls::kInvalidate, run.find(Kind::zmod_fetch, "l1", 5));
       }},
      {Rule::gather_needed, 3, "plain",
       [](RecordedRun& run) {
         insert_call(run, "coord.add_external:l2", run.find(Kind::engine_call, "engine.forward", 1),
                     "l1.linear.weight");
       }},
      {Rule::needed_soon, 3, "plain",
       [](RecordedRun& run) {
         insert_call(run, calls::kContext, run.find(Kind::engine_call, "engine.forward", 1),
                     "l1.linear.weight");
       }},
      {Rule::order_compared, 3, "plain",
       [](RecordedRun& run) {
         HookEvent sent = run.at(Kind::coll_issue, "broadcast");
         run.insert_before(run.find(Kind::engine_return, "coord.reset_step", 2), sent);
       }},
      {Rule::module_fetched, 3, "plain",
       [](RecordedRun& run) { run.drop(Kind::zmod_fetch, "l1.linear"); }},
      {Rule::kept_reused, 3, "two_losses",
       [](RecordedRun& run) {
         for (std::size_t i = 0; i + 1 < run.events.size(); ++i) {
           const bool is_reclaimed = run.events[i].kind == Kind::zparam_gather_begin &&
                                     run.events[i + 1].kind == Kind::zparam_gather_end;
           if (!is_reclaimed) continue;
           HookEvent sent = run.at(Kind::coll_issue, "all_gather");
           return run.insert_before(i + 1, sent);
         }
       },
       [](World& world) { world.unseen.has_many_outputs = false; }},
      {Rule::whole_unasked, 3, "two_losses", [](RecordedRun&) {},
       [](World& world) { world.unseen.keeps_graphs = false; }},
      {Rule::kept_bound, 3, "two_losses", [](RecordedRun&) {},
       [](World& world) { world.config.stage3_max_live_parameters = 5; }},
  };
}

std::vector<RuleRow> residency_rows() {
  return {
      {Rule::free_after_module, 3, "plain",
       [](RecordedRun& run) { run.drop(Kind::zparam_partition); }},
      {Rule::free_after_backward, 3, "plain",
       [](RecordedRun& run) {
         for (int n = 0; n < 40; ++n) {
           const std::size_t place = run.find(Kind::engine_call, "coord.release_backward", n);
           if (run.events[place + 1].kind != Kind::zparam_partition) continue;
           run.events.erase(run.events.begin() + static_cast<std::ptrdiff_t>(place) + 1);
           return;
         }
       }},
      {Rule::free_after_operation, 3, "plain",
       [](RecordedRun& run) {
         const std::size_t place = run.find(Kind::gt_begin) + 1;
         HookEvent gather = run.at(Kind::zparam_gather_begin);
         gather.graph_task = run.events[place].graph_task;
         run.insert_before(place, gather);
       }},
      {Rule::free_after_abort, 3, "exception",
       [](RecordedRun& run) {
         const std::size_t failed = run.find(Kind::zmod_fetch, "model", 1);
         for (std::size_t i = failed; i < run.events.size(); ++i) {
           if (run.events[i].kind != Kind::zparam_partition) continue;
           run.events.erase(run.events.begin() + static_cast<std::ptrdiff_t>(i));
           return;
         }
       }},
      {Rule::needed_soon, 3, "plain",
       [](RecordedRun& run) {
         HookEvent freed = run.at(Kind::zparam_partition);
         freed.params = {run.names.intern("l1.linear.weight")};
         run.insert_before(run.find(Kind::zmod_release, "l1.linear", 2) + 1, freed);
       }},
      {Rule::persistent_kept, 3, "plain", [](RecordedRun&) {},
       [](World& world) {
         for (Parameter& parameter : world.parameters) parameter.is_persistent = true;
       }},
      {Rule::persistent_back, 3, "plain", [](RecordedRun&) {},
       [](World& world) { world.parameters[1].is_persistent = true; }},
  };
}

std::vector<RuleRow> claim_rows() {
  return {
      {Rule::claim_kept, 3, "skipped_frame",
       [](RecordedRun& run) {
         HookEvent freed = run.at(Kind::zparam_partition);
         freed.params = run.at(Kind::engine_call, "fallback.claim").params;
         run.insert_before(run.find(Kind::engine_call, "fallback.claim") + 1, freed);
       }},
      {Rule::claim_freed, 3, "skipped_frame",
       [](RecordedRun& run) { run.drop(Kind::zparam_partition); }},
  };
}

std::vector<RuleRow> counter_rows() {
  return {
      {Rule::count_once, 2, "plain",
       [](RecordedRun& run) {
         HookEvent count = run.at(Kind::mark, "gradient_clipping");
         count.name = run.names.intern("count_used_parameters:4");
         run.insert_before(run.find(Kind::gt_end), count);
       }},
      {Rule::window_count, 2, "plain",
       [](RecordedRun& run) {
         run.at(Kind::mark, "window_holds").name = run.names.intern("window_holds:2");
       }},
      {Rule::step_count, 1, "plain",
       [](RecordedRun& run) { run.drop(Kind::engine_return, "engine.step"); }},
      {Rule::loss_scale, 2, "plain",
       [](RecordedRun& run) {
         run.at(Kind::mark, "loss_scale:", 1).name = run.names.intern("loss_scale:2");
       }},
      {Rule::step_outcome, 2, "plain",
       [](RecordedRun& run) { run.drop(Kind::mark, "step_applied"); }},
      {Rule::step_outcome, 2, "plain",
       [](RecordedRun& run) {
         run.at(Kind::mark, "step_applied").name = run.names.intern("step_skipped");
       }},
      {Rule::call_contents, 2, "plain",
       [](RecordedRun& run) { run.drop(Kind::engine_call, "engine.backward_prologue"); }},
      {Rule::call_contents, 2, "plain",
       [](RecordedRun& run) { run.drop_all(Kind::engine_call, "engine.backward_prologue"); }},
      {Rule::bracket_end, 2, "plain", [](RecordedRun& run) { run.drop(Kind::cb_end); }},
      {Rule::bracket_end, 3, "plain", [](RecordedRun& run) { run.drop(Kind::bhs_return); }},
  };
}

std::vector<RuleRow> all_rows() {
  std::vector<RuleRow> all;
  for (const auto& rows : {gradient_rows(), reduction_rows(), fetch_rows(), residency_rows(),
                           claim_rows(), counter_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

train::TrainCell cell_of(const RuleRow& row) {
  train::TrainCell cell;
  cell.scenario = row.scenario;
  cell.stage = row.stage;
  return cell;
}

TEST(ReferenceRules, Each_finds_the_change_that_breaks_it) {
  for (const RuleRow& row : all_rows()) {
    RecordedRun run(cell_of(row));
    ASSERT_FALSE(run.events.empty());
    EXPECT_TRUE(run.walk(run.worlds()).empty()) << info(row.rule).id;
    row.change(run);
    std::vector<World> worlds = run.worlds();
    if (row.configure) row.configure(worlds.front());
    const std::vector<Finding> findings = run.walk(worlds);
    const auto is_it = [&](const Finding& finding) { return finding.rule == row.rule; };
    std::string others;
    for (const Finding& finding : findings)
      others += std::string(info(finding.rule).id) + ": " + finding.text + "\n";
    EXPECT_TRUE(std::ranges::any_of(findings, is_it)) << info(row.rule).id << "\n" << others;
  }
}

// Its counters, window and parameters begin again.
TEST(ReferenceRules, Follows_an_engine_that_is_made_again) {
  for (int stage = 0; stage <= 3; ++stage) {
    train::TrainCell cell;
    cell.stage = stage;
    RecordedRun run(cell);
    const std::vector<HookEvent> once = run.events;
    run.events.insert(run.events.end(), once.begin(), once.end());
    for (const Finding& finding : run.walk(run.worlds()))
      ADD_FAILURE() << stage << ": " << info(finding.rule).id << ": " << finding.text;
  }
}

TEST(ReferenceRules, Each_has_a_change_that_breaks_it) {
  std::set<Rule> broken;
  for (const RuleRow& row : all_rows()) broken.insert(row.rule);
  for (const RuleInfo& rule : rules())
    if (rule.rule != Rule::rest_bytes) {
      EXPECT_TRUE(broken.contains(rule.rule)) << rule.id;
    }
}

}  // namespace
}  // namespace zeroproof::reference
