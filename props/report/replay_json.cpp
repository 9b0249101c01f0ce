#include <nlohmann/json.hpp>

#include "props/report/answers_json.h"
#include "props/report/json.h"
#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using Json = nlohmann::ordered_json;

Json queue_json(const QueueReport& queue) {
  Json level = {{"graph_tasks", queue.graph_tasks},
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

Json state_json(const StateReport& state) {
  Json level = {{"policy", state.policy},
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

Json structure_json(const TraceReplay& trace) {
  Json findings = Json::array();
  for (const StructureFinding& finding : trace.structure) {
    findings.push_back({{"rule", finding.rule},
                        {"line", finding.line_number},
                        {"lc", finding.lc},
                        {"text", finding.text}});
  }
  return {{"count", trace.structure_count}, {"findings", findings}};
}

Json counts_json(const TraceCounts& counts) {
  return {{"collectives", counts.collectives},
          {"messages", counts.messages},
          {"backwards", counts.backwards},
          {"gradients", counts.hooks},
          {"steps", counts.steps}};
}

Json checked_json(const TraceReplay& trace) {
  if (!trace.story) return nullptr;
  return {{"rules", trace.story->checked.rules}, {"left_out", trace.story->checked.left_out}};
}

Json run_json(const RunComparison& run) {
  return {{"run", run.run},
          {"world", run.world},
          {"ranks", run.ranks},
          {"compared", run.checked},
          {"not_compared", run.skipped}};
}

Json trace_json(const TraceReplay& trace) {
  Json levels = Json::object();
  if (trace.queue) levels["queue"] = queue_json(*trace.queue);
  if (trace.state) levels["state"] = state_json(*trace.state);
  if (trace.properties) levels["properties"] = properties_json<Json>(*trace.properties);
  const char* status = trace.fault ? "unreadable" : trace.agrees() ? "ok" : "mismatched";
  Json error = trace.fault ? Json(trace.fault->text) : Json(nullptr);
  return {{"path", trace.path},
          {"program", trace.program},
          {"status", status},
          {"error", error},
          {"events", trace.events},
          {"counts", counts_json(trace.counts)},
          {"checked", checked_json(trace)},
          {"framework", trace.story ? Json(framework_name(trace.story->framework)) : Json(nullptr)},
          {"structure", structure_json(trace)},
          {"levels", levels}};
}

Json schedule_json(const ScheduleReplay& replay) {
  Json settings = Json::object();
  for (const auto& [key, value] : replay.schedule.settings) settings[key] = value;
  return {{"source", replay.source},
          {"scenario", replay.schedule.scenario},
          {"settings", settings},
          {"properties", verdicts_json<Json>(replay.run.verdicts)},
          {"expected", replay.expected ? Json(*replay.expected) : Json(nullptr)},
          {"reproduced", replay.is_reproduced()}};
}

}  // namespace

std::string replay_json(const ReplayReport& report, const std::vector<ScheduleReplay>& schedules,
                        const ReplayAnswers& answers) {
  const ReplaySummary summary = report.summary();
  Json document = {{"schema", "zeroproof.replay/1"},
                   {"summary",
                    {{"traces", summary.traces},
                     {"ok", summary.ok},
                     {"mismatched", summary.mismatched},
                     {"unreadable", summary.unreadable}}},
                   {"interrupted", report.is_interrupted},
                   {"traces", Json::array()}};
  for (const TraceReplay& trace : report.traces) document["traces"].push_back(trace_json(trace));
  document["runs"] = Json::array();
  for (const RunComparison& run : report.runs) document["runs"].push_back(run_json(run));
  for (const ScheduleReplay& schedule : schedules) {
    document["schedules"].push_back(schedule_json(schedule));
  }
  add_answers(answers, document);
  return document_text(document);
}

}  // namespace zeroproof
