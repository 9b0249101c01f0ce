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

std::optional<bool> refusal(const TrainFacts& facts) {
  return facts.was_refused;
}

using Question = bool (*)(const TrainFacts&);
using TrainOutcome = std::optional<bool> (*)(const TrainFacts&);

std::optional<bool> equality(const TrainFacts& facts) {
  return facts.is_equal;
}

// When a run speaks about a property, and what in it answers.
struct Rule {
  std::string_view number;
  Question is_about;
  TrainOutcome outcome = equality;
};

// Equal numbers answer those questions whose answer changes the numbers. Windows of one backward
// cannot separate factors that cancel, so each rule asks for the run in which they do not.
constexpr std::array kRules = {
    Rule{"P19",
         [](const TrainFacts& f) {
           return f.gradient_accumulation_steps > 1 ||
                  is_one_of(f, {"container_output", "chained_engines", "regulariser_bypass"});
         }},
    Rule{"P20", [](const TrainFacts& f) { return is_one_of(f, {"scale_argument"}); }},
    Rule{"P21",
         [](const TrainFacts& f) { return is_one_of(f, {"scale_argument"}) && !f.is_manual; }},
    Rule{"P22", [](const TrainFacts& f) { return f.is_scaled && f.is_manual; }},
    Rule{"P23", [](const TrainFacts& f) { return f.is_scaled; }},
    Rule{"P24", [](const TrainFacts& f) { return f.refusal == "backward_without_loss_scaling"; },
         refusal},
    Rule{"P24",
         [](const TrainFacts& f) { return f.is_scaled && is_one_of(f, {"forgotten_scale"}); }},
    Rule{"P25", [](const TrainFacts& f) { return is_one_of(f, {"separate_loss"}); }},
    Rule{"P26",
         [](const TrainFacts& f) {
           return is_one_of(f, {"cleared"}) || (f.gradient_accumulation_steps == 1 &&
                                                f.forwards == 1 && !is_one_of(f, {"two_losses"}));
         }},
    Rule{"P27",
         [](const TrainFacts& f) { return f.gradient_accumulation_steps > 1 && f.is_managed; }},
    Rule{"P28", [](const TrainFacts& f) { return is_one_of(f, {"two_losses"}); }},
    Rule{"P29", [](const TrainFacts& f) { return is_one_of(f, {"fwd_fwd_bwd_bwd"}); }},
    Rule{"P31",
         [](const TrainFacts& f) {
           return is_one_of(f, {"unused", "unmanaged_offload"});
         }},
    Rule{"P32",
         [](const TrainFacts& f) {
           return is_one_of(f, {"unused", "alternating", "offload"}) &&
                  f.gradient_accumulation_steps > 1;
         }},
    Rule{"P33", [](const TrainFacts& f) { return !f.is_managed; }},
    Rule{"P34", [](const TrainFacts& f) { return is_one_of(f, {"coalesced"}); }},
    Rule{"P35", [](const TrainFacts& f) { return f.is_offloaded; }},
    Rule{"P36",
         [](const TrainFacts& f) {
           return is_one_of(f, {"reentrant", "nonreentrant"});
         }},
    Rule{"P37", [](const TrainFacts& f) { return is_one_of(f, {"tiled"}); }},
    // Stage 3 frees parameters by the order of PyTorch's ready queue, which is one order.
    Rule{"P38", [](const TrainFacts& f) { return f.stage < 3; },
         [](const TrainFacts& f) { return f.has_equal_orders; }},
    Rule{"P39", [](const TrainFacts& f) { return f.gradient_accumulation_steps > 1; }},
    Rule{"P40", [](const TrainFacts& f) { return f.world_size > 1; },
         [](const TrainFacts& f) { return f.has_equal_ranks; }},
    Rule{"P61", [](const TrainFacts&) { return true; },
         [](const TrainFacts& f) { return f.has_equal_step_counts; }},
    Rule{"P77", [](const TrainFacts& f) { return f.refusal == "gradient_of_wrong_size"; }, refusal},
};

// Properties of the scope train that no run of it shows.
struct JudgedElsewhere {
  std::string_view number;
  std::string_view judge;
};

constexpr std::array kElsewhere = {
    JudgedElsewhere{"P50", "tests/peer/zero_partition_test.cpp"},
    JudgedElsewhere{"P87", "tests/engine/checkpoint_round_trip_test.cpp"},
};

std::string not_shown_reason(const Property& property) {
  for (const JudgedElsewhere& one : kElsewhere)
    if (one.number == property.number)
      return fmt::format("no number of a training run shows it: {} judges it", one.judge);
  return {};
}

Finding finding_of(const Property& property, const TrainFacts& facts) {
  const std::string& difference =
      property.number == "P38" ? facts.order_difference : facts.difference;
  return {&property,
          0,
          0,
          fmt::format("train {}", facts.scenario),
          fmt::format("stage {} on {} ranks: {}", facts.stage, facts.world_size,
                      difference.empty() ? "differs" : difference),
          false};
}

// Of several rules about one run, one that is broken decides.
Verdict judge(const Property& property, const TrainFacts& facts) {
  Verdict verdict;
  verdict.property = &property;
  verdict.reason = not_shown_reason(property);
  if (verdict.reason.empty())
    verdict.reason = fmt::format("scenario {} does not exercise it", facts.scenario);
  for (const Rule& rule : kRules) {
    if (rule.number != property.number || !rule.is_about(facts)) continue;
    const auto outcome = rule.outcome(facts);
    if (!outcome && verdict.status == Status::not_applicable)
      verdict.reason = "the run did not look at it";
    if (!outcome || verdict.status == Status::falsified) continue;
    verdict.status = *outcome ? Status::held : Status::falsified;
    verdict.reason.clear();
    if (*outcome) continue;
    verdict.finding_count = 1;
    verdict.findings.push_back(finding_of(property, facts));
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
