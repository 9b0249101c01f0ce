#include <nlohmann/json.hpp>

#include "props/report/answers_json.h"
#include "props/report/json.h"
#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson queue_json(const QueueReport& queue) {
  OrderedJson level = {{"graph_tasks", queue.graph_tasks},
                       {"matched", queue.matched},
                       {"races", queue.races},
                       {"mismatched", queue.mismatched},
                       {"unfinished", queue.unfinished},
                       {"opaque", queue.opaque},
                       {"without_graph", queue.without_graph}};
  level["first_mismatch"] = nullptr;
  if (queue.first_mismatch) {
    level["first_mismatch"] = {{"call", queue.first_mismatch->call},
                               {"text", queue.first_mismatch->text}};
  }
  return level;
}

OrderedJson state_json(const StateReport& state) {
  OrderedJson level = {{"policy", state.policy},
                       {"mode", policy_mode_name(state.mode)},
                       {"calls", state.calls},
                       {"matched", state.matched}};
  level["first_mismatch"] = nullptr;
  if (state.first_mismatch) {
    level["first_mismatch"] = {{"lc", state.first_mismatch->lc},
                               {"engine", state.first_mismatch->engine.value},
                               {"text", state.first_mismatch->text}};
  }
  return level;
}

OrderedJson structure_json(const TraceReplay& trace) {
  OrderedJson findings = OrderedJson::array();
  for (const StructureFinding& finding : trace.structure) {
    findings.push_back({{"rule", finding.rule},
                        {"line", finding.line_number},
                        {"lc", finding.lc},
                        {"text", finding.text}});
  }
  return {{"count", trace.structure_count}, {"findings", findings}};
}

OrderedJson counts_json(const TraceCounts& counts) {
  return {{"collectives", counts.collectives},
          {"messages", counts.messages},
          {"backwards", counts.backwards},
          {"gradients", counts.hooks},
          {"steps", counts.steps}};
}

OrderedJson checked_json(const TraceReplay& trace) {
  if (!trace.story) return nullptr;
  return {{"rules", trace.story->checked.rules}, {"left_out", trace.story->checked.left_out}};
}

OrderedJson run_json(const RunComparison& run) {
  return {{"run", run.run},
          {"world", run.world},
          {"ranks", run.ranks},
          {"compared", run.checked},
          {"not_compared", run.skipped}};
}

OrderedJson trace_json(const TraceReplay& trace) {
  OrderedJson levels = OrderedJson::object();
  if (trace.queue) levels["queue"] = queue_json(*trace.queue);
  if (trace.state) levels["state"] = state_json(*trace.state);
  if (trace.properties) levels["properties"] = properties_json<OrderedJson>(*trace.properties);
  const char* status = trace.fault ? "unreadable" : trace.agrees() ? "ok" : "mismatched";
  OrderedJson error = trace.fault ? OrderedJson(trace.fault->text) : OrderedJson(nullptr);
  return {{"path", trace.path},
          {"program", trace.program},
          {"status", status},
          {"error", error},
          {"events", trace.events},
          {"counts", counts_json(trace.counts)},
          {"checked", checked_json(trace)},
          {"framework", trace.story ? OrderedJson(framework_name(trace.story->framework))
                                    : OrderedJson(nullptr)},
          {"structure", structure_json(trace)},
          {"levels", levels}};
}

OrderedJson schedule_json(const ScheduleReplay& replay) {
  OrderedJson settings = OrderedJson::object();
  for (const auto& [key, value] : replay.schedule.settings) settings[key] = value;
  return {{"source", replay.source},
          {"scenario", replay.schedule.scenario},
          {"settings", settings},
          {"properties", verdicts_json<OrderedJson>(replay.run.verdicts)},
          {"expected", replay.expected ? OrderedJson(*replay.expected) : OrderedJson(nullptr)},
          {"reproduced", replay.is_reproduced()}};
}

}  // namespace

std::string replay_json(const ReplayReport& report, const std::vector<ScheduleReplay>& schedules,
                        const ReplayAnswers& answers) {
  const ReplaySummary summary = report.summary();
  OrderedJson document = {{"schema", "zeroproof.replay/1"},
                          {"summary",
                           {{"traces", summary.traces},
                            {"ok", summary.ok},
                            {"mismatched", summary.mismatched},
                            {"unreadable", summary.unreadable}}},
                          {"interrupted", report.is_interrupted},
                          {"traces", OrderedJson::array()}};
  for (const TraceReplay& trace : report.traces) document["traces"].push_back(trace_json(trace));
  document["runs"] = OrderedJson::array();
  for (const RunComparison& run : report.runs) document["runs"].push_back(run_json(run));
  for (const ScheduleReplay& schedule : schedules) {
    document["schedules"].push_back(schedule_json(schedule));
  }
  add_answers(answers, document);
  return document_text(document);
}

}  // namespace zeroproof
