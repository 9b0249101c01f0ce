#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "props/report/table.h"
#include "props/zero_epilogue.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ModelProperty = zero_epilogue::Property;
using zero_epilogue::property_name;

template <class Value>
OrderedJson value_or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

constexpr double kSure = 0.01;  // of a miss: 99 %

// The same with another k.
PctCertificate with_steps(PctCertificate pct, std::uint64_t steps) {
  pct.steps = steps;
  return pct;
}

OrderedJson pct_json(const PctCertificate& pct, std::uint64_t own_steps) {
  return {
      {"processes", pct.tasks},
      {"events", pct.steps},
      {"depth", pct.depth},
      {"schedules", pct.runs},
      {"chance_a_schedule", pct.hit_chance()},
      {"chance_of_a_miss", pct.miss_chance()},
      {"schedules_for_99_percent", pct.runs_for(kSure)},
      {"events_without_completions", own_steps},
      {"schedules_for_99_percent_without_completions", with_steps(pct, own_steps).runs_for(kSure)}};
}

std::string constraints_text(const ZeroEpilogueFinding& finding) {
  if (!finding.constraints) return "";
  const std::size_t count = finding.constraints->size();
  if (count == 0) return "  every schedule fails so: no order matters\n";
  std::string text =
      fmt::format("  {} order{} that every schedule fails under, and {}:\n", count,
                  count == 1 ? "" : "s", finding.is_least ? "no fewer do" : "none can be left out");
  for (const std::string& one : *finding.constraints) text += fmt::format("        {}\n", one);
  return text;
}

std::string finding_text(const ZeroEpilogueReport& report, const ZeroEpilogueFinding& finding) {
  std::string text = fmt::format("  {} falsified: {}\n", property_name(finding.property),
                                 property_statement(finding.property));
  text += fmt::format("  {} events, ", finding.events);
  if (finding.is_shortest) {
    text += "no shorter run exists\n";
  } else if (finding.events == finding.events_found) {
    text += "as it was met\n";
  } else {
    text += fmt::format("minimised from {}\n", finding.events_found);
  }
  if (finding.settings != report.settings) text += fmt::format("  under {}\n", finding.settings);
  for (std::size_t i = 0; i < finding.steps.size(); ++i) {
    text += fmt::format("  {:>4}  {}\n", i + 1, finding.steps[i]);
  }
  text += constraints_text(finding);
  if (!finding.token.empty()) text += fmt::format("  replay: {}\n", finding.token);
  return text;
}

OrderedJson finding_json(const ZeroEpilogueFinding& finding) {
  return {{"property", property_name(finding.property)},
          {"events", finding.events},
          {"events_found", finding.events_found},
          {"is_shortest", finding.is_shortest},
          {"settings", finding.settings},
          {"token", finding.token},
          {"counterexample", finding.steps},
          {"constraints", value_or_null(finding.constraints)},
          {"is_least", finding.is_least}};
}

double redundancy(const ZeroEpilogueReport& report) {
  const double executions = std::stod(report.schedules.value_or("0"));
  return *report.classes == 0 ? 1 : executions / static_cast<double>(*report.classes);
}

OrderedJson coverage_json(const ZeroEpilogueCoverage& coverage) {
  OrderedJson probes = OrderedJson::object();
  for (const auto& probe : coverage.probes) probes[std::string(probe.name)] = probe.hits;
  return {{"states", coverage.counts.states},
          {"all_states", value_or_null(coverage.counts.all_states)},
          {"pair_orders", coverage.counts.pair_orders},
          {"feasible_pair_orders", coverage.counts.feasible_pair_orders},
          {"pairs_both_ways", coverage.counts.pairs_both_ways},
          {"feasible_pairs", coverage.counts.feasible_pairs},
          {"triples", value_or_null(coverage.counts.triples)},
          {"feasible_triples", value_or_null(coverage.counts.feasible_triples)},
          {"probes", probes},
          {"states_by_tenth", coverage.growth}};
}

// One line.
std::string coverage_text(const ZeroEpilogueCoverage& coverage) {
  const auto& counts = coverage.counts;
  const double all = static_cast<double>(counts.all_states.value_or(0));
  std::string text = fmt::format("states {}", counts.states);
  if (counts.all_states) {
    text += fmt::format(" of {} ({:.1f} %)", *counts.all_states,
                        100 * static_cast<double>(counts.states) / all);
  }
  if (coverage.growth.size() > 1) {
    text += fmt::format(", {} of them new in the last tenth",
                        coverage.growth.back() - coverage.growth[coverage.growth.size() - 2]);
  }
  text += fmt::format("; pair orders {} of {}, pairs both ways {} of {}", counts.pair_orders,
                      counts.feasible_pair_orders, counts.pairs_both_ways, counts.feasible_pairs);
  if (counts.triples) {
    text +=
        fmt::format("; triples {} of {} ({:.1f} %)", *counts.triples, *counts.feasible_triples,
                    100 * static_cast<double>(*counts.triples) /
                        static_cast<double>(std::max<std::uint64_t>(*counts.feasible_triples, 1)));
  }
  std::size_t hit = 0;
  std::string missed;
  for (const auto& probe : coverage.probes) {
    hit += probe.hits != 0 ? 1 : 0;
    if (probe.hits == 0) missed += fmt::format(" {}", probe.name);
  }
  text += fmt::format("; probes {} of {}", hit, coverage.probes.size());
  return missed.empty() ? text : text + ", missed:" + missed;
}

std::string pct_text(const PctCertificate& pct, std::uint64_t own_steps) {
  return fmt::format(
      "  pct: n={} processes, k={} events, d={}: a violation of depth {} is met in a schedule with "
      "a chance of at least {:.3g},\n  and was missed by all {} with at most {:.3g}; 99 % take {} "
      "schedules, or {} where completions are not counted (k={})\n",
      pct.tasks, pct.steps, pct.depth, pct.depth, pct.hit_chance(), pct.runs, pct.miss_chance(),
      pct.runs_for(kSure), with_steps(pct, own_steps).runs_for(kSure), own_steps);
}

}  // namespace

std::string zero_epilogue_json(const ZeroEpilogueReport& report, std::uint64_t seed,
                               const ZeroEpilogueTimes& seconds) {
  OrderedJson document = {{"schema", "zeroproof.zero_epilogue/1"},
                          {"scenario", "zero_epilogue"},
                          {"settings", report.settings},
                          {"scheduler", report.scheduler},
                          {"is_reduced", report.is_reduced},
                          {"seed", seed},
                          {"states", value_or_null(report.states)},
                          {"transitions", value_or_null(report.transitions)},
                          {"schedules", value_or_null(report.schedules)},
                          {"seconds", seconds.verdict},
                          {"seconds_total", seconds.all},
                          {"bytes_per_state", value_or_null(report.bytes_per_state)},
                          {"verdict", exploration_status_name(status_of(report))}};
  if (report.classes) {
    document["classes"] = *report.classes;
    document["redundancy"] = redundancy(report);
  }
  if (!report.findings.empty()) {
    const ZeroEpilogueFinding& first = report.findings.front();
    document["property"] = property_name(first.property);
    document["events"] = first.events;
    document["is_shortest"] = first.is_shortest;
    document["token"] = first.token;
    document["counterexample"] = first.steps;
    for (const auto& one : report.findings) document["findings"].push_back(finding_json(one));
  }
  if (!report.replayed.empty()) document["replayed"] = report.replayed;
  if (report.pct) document["pct"] = pct_json(*report.pct, *report.pct_own_steps);
  if (report.coverage) document["coverage"] = coverage_json(*report.coverage);
  for (std::size_t i = 0; i < report.probabilities.size(); ++i) {
    const auto property = static_cast<ModelProperty>(i + 1);
    document["probabilities"][std::string(property_name(property))] = report.probabilities[i];
  }
  return document.dump(1);
}

std::string zero_epilogue_text(const ZeroEpilogueReport& report, const ZeroEpilogueTimes& seconds) {
  std::string text = fmt::format("zero_epilogue {}: {}\n", report.settings,
                                 exploration_status_name(status_of(report)));
  if (!report.defect.empty()) text += fmt::format("  defect: {}\n", report.defect);
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"scheduler", report.scheduler + (report.is_reduced ? ", reduced" : "")});
  if (!report.replayed.empty()) rows.push_back({"replay", report.replayed});
  if (report.states) rows.push_back({"states", std::to_string(*report.states)});
  if (report.transitions) rows.push_back({"transitions", std::to_string(*report.transitions)});
  if (report.schedules) rows.push_back({"schedules", *report.schedules});
  if (report.classes) {
    rows.push_back(
        {"classes", fmt::format("{}, redundancy {:.3f}{}", *report.classes, redundancy(report),
                                report.is_complete ? "" : ", not all orders")});
  }
  if (report.bytes_per_state) {
    rows.push_back({"bytes a state", fmt::format("{:.2f}", *report.bytes_per_state)});
  }
  rows.push_back({"seconds", fmt::format("{:.4f}", seconds.verdict)});
  for (std::size_t i = 0; i < report.probabilities.size(); ++i) {
    if (report.probabilities[i] == 0) continue;
    rows.push_back({fmt::format("chance of {}", property_name(static_cast<ModelProperty>(i + 1))),
                    fmt::format("{:.9g} a random schedule", report.probabilities[i])});
  }
  if (report.coverage) rows.push_back({"coverage", coverage_text(*report.coverage)});
  text += table_text(rows);
  if (report.pct) text += pct_text(*report.pct, *report.pct_own_steps);
  for (const ZeroEpilogueFinding& finding : report.findings) text += finding_text(report, finding);
  return text;
}

std::vector<JUnitCase> zero_epilogue_cases(const ZeroEpilogueReport& report) {
  const std::string suite = fmt::format("zero_epilogue {} {}", report.settings, report.scheduler);
  const ExplorationStatus status = status_of(report);
  JUnitCase search{.suite = suite, .name = "search"};
  if (status != ExplorationStatus::held && status != ExplorationStatus::falsified) {
    search.outcome = JUnitOutcome::error;
    search.text = exploration_status_name(status);
  }
  std::vector<JUnitCase> cases = {search};
  for (std::size_t i = 1; i < zero_epilogue::kProperties; ++i) {
    const auto property = static_cast<ModelProperty>(i);
    JUnitCase one{.suite = suite, .name = std::string(property_name(property))};
    for (const ZeroEpilogueFinding& finding : report.findings) {
      if (finding.property != property) continue;
      one.outcome = JUnitOutcome::failed;
      one.text = finding_text(report, finding);
    }
    cases.push_back(one);
  }
  return cases;
}

}  // namespace zeroproof
