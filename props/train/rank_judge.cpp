#include "props/train/rank_judge.h"

#include "props/train/rank_recorder.h"

namespace zeroproof::train {
namespace {

RunFacts run_facts(const TrainScenario& scenario, const TrainCell& cell, std::int32_t rank) {
  return {.program = std::string(scenario.name),
          .dtype = std::string(precision_name(cell.precision)),
          .rank = rank,
          .world = cell.world_size,
          .stage = cell.stage};
}

RankFacts facts_of(const TrainScenario& scenario, const TrainCell& cell, std::int32_t rank) {
  RankFacts facts{.run = run_facts(scenario, cell, rank), .groups = {}, .params = {}};
  for (const GroupRecord& group : world_groups(cell.world_size)) facts.groups.push_back(group);
  for (const GroupRecord& group : groups_within(cell, rank)) facts.groups.push_back(group);
  for (const ParamRecord& param : declared_params(scenario, cell))
    facts.params.push_back(param.name);
  return facts;
}

}  // namespace

RankJudge::RankJudge(const TrainScenario& scenario, const TrainCell& cell, std::int32_t rank)
    : RankJudge(facts_of(scenario, cell, rank)) {}

RankJudge::RankJudge(const RankFacts& facts)
    : level_(facts.run, names_, job_),
      journal_(*this, names_, facts.run.rank),
      models_(journal_, facts.run.stage == 0) {
  for (const GroupRecord& group : facts.groups) job_.declare(group);
  for (const std::string& param : facts.params) level_.declare_param(param);
}

RankJudge::~RankJudge() = default;

void RankJudge::finish(bool is_complete) {
  level_.finish(is_complete);
  streams_.finish();
}

PropertiesReport RankJudge::report() const {
  PropertiesReport report = level_.report();
  PropertiesReport streams;
  for (Verdict verdict : streams_.verdicts()) {
    for (Finding& finding : verdict.findings) finding.rank = level_.facts().rank;
    streams.add(verdict);
  }
  report.merge(streams);
  return report;
}

}  // namespace zeroproof::train
