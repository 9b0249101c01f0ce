#include "props/report/replay_junit.h"

#include <fmt/format.h>

#include <map>

namespace zeroproof {
namespace {

class Cases {
 public:
  std::vector<JUnitCase> cases;

  void add(const TraceReplay& trace) {
    path_ = trace.path;
    put("readable", trace.fault ? JUnitOutcome::error : JUnitOutcome::passed,
        trace.fault ? trace.fault->text : "");
    if (trace.queue) add(*trace.queue);
    if (trace.state) add(*trace.state);
    if (trace.structure_count > 0) put("format", JUnitOutcome::failed, trace.structure[0].text);
    if (trace.properties) add(*trace.properties);
  }

 private:
  void put(std::string name, JUnitOutcome outcome, std::string text = {}) {
    cases.push_back({path_, std::move(name), outcome, std::move(text)});
  }

  void add(const QueueReport& queue) {
    if (queue.graph_tasks == 0) return put("queue", JUnitOutcome::skipped, "no graph task");
    if (queue.holds()) return put("queue", JUnitOutcome::passed);
    put("queue", JUnitOutcome::failed, queue.first_mismatch ? queue.first_mismatch->text : "");
  }

  void add(const StateReport& state) {
    if (!state.is_applicable()) return put("state", JUnitOutcome::skipped, "no manager call");
    if (state.matched == state.calls) return put("state", JUnitOutcome::passed);
    put("state", JUnitOutcome::failed, state.first_mismatch ? state.first_mismatch->text : "");
  }

  void add(const PropertiesReport& properties) {
    for (const Property* held : properties.held) put(std::string(held->id), JUnitOutcome::passed);
    std::map<std::string, std::string> falsified;  // all findings of a property in one case
    for (const Finding& finding : properties.falsified) {
      falsified[std::string(finding.property->id)] +=
          fmt::format("lc {} rank {}: {}\n", finding.lc, finding.rank, finding.text);
    }
    for (const auto& [id, text] : falsified) put(id, JUnitOutcome::failed, text);
    for (const NotApplicable& one : properties.not_applicable) {
      put(std::string(one.property->id), JUnitOutcome::skipped, one.reason);
    }
  }

  std::string path_;
};

}  // namespace

std::vector<JUnitCase> replay_cases(const ReplayReport& report) {
  Cases cases;
  for (const TraceReplay& trace : report.traces) cases.add(trace);
  return std::move(cases.cases);
}

}  // namespace zeroproof
