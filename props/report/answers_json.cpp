#include "props/report/answers_json.h"

#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson moment_json(const DiagnosisMoment& moment) {
  return {{"rank", moment.rank}, {"lc", moment.lc}, {"text", moment.text}, {"bad", moment.is_bad}};
}

OrderedJson dumps_json(const DumpReport& report) {
  OrderedJson dumps = OrderedJson::array();
  for (std::size_t at = 0; at < report.dumps.size(); ++at) {
    const RankDump& dump = report.dumps[at];
    dumps.push_back({{"path", dump.path},
                     {"format", dump_format_name(dump.format)},
                     {"version", dump.version},
                     {"rank", dump.rank},
                     {"collectives", report.collectives[at]},
                     {"nodes", report.nodes[at]},
                     {"error", nullptr}});
  }
  for (const Error& fault : report.faults) dumps.push_back({{"error", fault.text}});
  OrderedJson verdicts = OrderedJson::object();
  for (const auto& [name, count] : report.verdicts) verdicts[name] = count;
  return {{"files", dumps}, {"verdicts", verdicts}};
}

}  // namespace

OrderedJson diagnosis_json(const Diagnosis& one) {
  OrderedJson order = OrderedJson::array();
  for (const DiagnosisMoment& moment : one.order) order.push_back(moment_json(moment));
  OrderedJson waits = OrderedJson::array();
  for (const DiagnosisWait& wait : one.waits)
    waits.push_back({{"rank", wait.rank},
                     {"ranks", wait.ranks.empty() ? std::vector{wait.rank} : wait.ranks},
                     {"for", wait.for_ranks},
                     {"in", wait.text}});
  const auto text = [](const std::string& word) {
    return word.empty() ? OrderedJson(nullptr) : OrderedJson(word);
  };
  return {{"kind", one.kind},
          {"gravity", gravity_name(one.gravity)},
          {"what", one.what},
          {"ranks", one.ranks},
          {"parameter", text(one.parameter)},
          {"collective", text(one.collective)},
          {"last_common", one.last_common ? moment_json(*one.last_common) : OrderedJson(nullptr)},
          {"order", order},
          {"waits", waits},
          {"rule", one.rule},
          {"look_at", one.look_at},
          {"files", one.files}};
}

void add_answers(const ReplayAnswers& answers, OrderedJson& document) {
  document["diagnosis"] = OrderedJson::array();
  for (const Diagnosis& one : answers.diagnosis)
    document["diagnosis"].push_back(diagnosis_json(one));
  if (!answers.dumps.dumps.empty() || !answers.dumps.faults.empty())
    document["dumps"] = dumps_json(answers.dumps);
  for (const WhatIfReport& report : answers.what_if) {
    OrderedJson missed = OrderedJson::array();
    for (const WhatIfMiss& miss : report.missed)
      missed.push_back({{"engine", miss.engine.value}, {"lc", miss.lc}, {"params", miss.params}});
    document["what_if"].push_back({{"path", report.path},
                                   {"policy", report.policy},
                                   {"mode", policy_mode_name(report.mode)},
                                   {"backwards", report.backwards},
                                   {"epilogues", report.epilogues},
                                   {"early_epilogues", report.early_epilogues},
                                   {"missed", missed},
                                   {"text", report.lines}});
  }
}

}  // namespace zeroproof
