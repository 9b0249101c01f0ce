#include "props/train_properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "props/registry.h"

namespace zeroproof {
namespace {

bool is_one_of(const TrainFacts& facts, std::initializer_list<std::string_view> scenarios) {
  return std::find(scenarios.begin(), scenarios.end(), facts.scenario) != scenarios.end();
}

using Question = bool (*)(const TrainFacts&);
using Outcome = std::optional<bool> (*)(const TrainFacts&);

std::optional<bool> equality(const TrainFacts& facts) {
  return facts.is_equal;
}

// When a run speaks about a property, and what in it answers.
struct Rule {
  std::string_view number;
  Question is_about;
  Outcome outcome = equality;
};

// Equal numbers answer those questions whose answer changes the numbers. Windows of one backward
// cannot tell factors that cancel, so each rule asks for the run in which they do not.
constexpr std::array kRules = {
    Rule{"P19",
         [](const TrainFacts& f) {
           return f.gradient_accumulation_steps > 1 ||
                  is_one_of(f, {"container_output", "chained_engines", "regulariser_bypass"});
         }},
    Rule{"P22", [](const TrainFacts& f) { return f.is_scaled && f.is_manual; }},
    Rule{"P23", [](const TrainFacts& f) { return f.is_scaled; }},
    Rule{"P25", [](const TrainFacts& f) { return is_one_of(f, {"separate_loss"}); }},
    Rule{"P31", [](const TrainFacts& f) { return is_one_of(f, {"unused"}); }},
    Rule{"P32",
         [](const TrainFacts& f) {
           return is_one_of(f, {"unused"}) && f.gradient_accumulation_steps > 1;
         }},
    Rule{"P33", [](const TrainFacts& f) { return !f.is_managed; }},
    Rule{"P34", [](const TrainFacts& f) { return is_one_of(f, {"coalesced"}); }},
    Rule{"P35", [](const TrainFacts& f) { return f.is_offloaded; }},
    Rule{"P36",
         [](const TrainFacts& f) {
           return is_one_of(f, {"reentrant", "nonreentrant"});
         }},
    Rule{"P37", [](const TrainFacts& f) { return is_one_of(f, {"tiled"}); }},
    Rule{"P39", [](const TrainFacts& f) { return f.gradient_accumulation_steps > 1; }},
    Rule{"P40", [](const TrainFacts& f) { return f.world_size > 1; },
         [](const TrainFacts& f) { return f.has_equal_ranks; }},
    Rule{"P61", [](const TrainFacts&) { return true; },
         [](const TrainFacts& f) { return f.has_equal_step_counts; }},
};

Verdict judge(const Property& property, const TrainFacts& facts) {
  Verdict verdict;
  verdict.property = &property;
  const auto* rule = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const Rule& one) { return one.number == property.number; });
  if (rule == kRules.end()) {
    verdict.reason = "no number of a training run shows it: a test of the engine does";
  } else if (!rule->is_about(facts)) {
    verdict.reason = fmt::format("scenario {} does not exercise it", facts.scenario);
  } else if (const auto outcome = rule->outcome(facts); !outcome) {
    verdict.reason = "the run did not look at it";
  } else if (*outcome) {
    verdict.status = Status::held;
  } else {
    verdict.status = Status::falsified;
    verdict.finding_count = 1;
    verdict.findings.push_back(
        {&property, 0, 0, fmt::format("train {}", facts.scenario),
         fmt::format("stage {} on {} ranks: {}", facts.stage, facts.world_size,
                     facts.difference.empty() ? "differs" : facts.difference),
         false});
  }
  return verdict;
}

}  // namespace

std::vector<Verdict> judge_training(const TrainFacts& facts) {
  std::vector<Verdict> verdicts;
  for (const Property& property : all_properties())
    if (property.scopes.has(Scope::train)) verdicts.push_back(judge(property, facts));
  return verdicts;
}

}  // namespace zeroproof
