#include "props/interpreter/program_judge.h"

#include <string>

#include "props/interpreter/observe.h"
#include "props/replay/run_group.h"
#include "props/train/cell_run.h"
#include "props/train/rank_recorder.h"

namespace zeroproof::program {
namespace {

std::string precision_of(const ZeroConfig& config) {
  if (config.torch_autocast.enabled) return "autocast";
  if (config.fp16.enabled) return "fp16";
  return config.bf16.enabled ? "bf16" : "float32";
}

std::vector<std::string> parameters_of(const RunnableProgram& runnable) {
  std::vector<std::string> names;
  const Program& program = runnable.program();
  for (std::size_t i = 0; i < program.engines.size(); ++i) {
    const std::string& engine = program.engines[i].name;
    const TreeModule module(program.model_of(engine), runnable.data().table(engine), {});
    for (const nn::NamedParameter& named : module.named_parameters())
      names.push_back(engine_prefix(program, i) + named.name);
  }
  return names;
}

}  // namespace

ProgramJudge::ProgramJudge(const RunnableProgram& runnable) {
  const RunnableProgram::Segment& segment = runnable.segments().back();
  const World& world = runnable.program().world;
  train::TrainCell cell;
  cell.world_size = segment.ranks * world.tensor;
  cell.tensor_degree = world.tensor;
  train::RankFacts facts{.run = {.program = "generated",
                                 .dtype = precision_of(segment.config),
                                 .world = cell.world_size,
                                 .stage = segment.config.stage},
                         .groups = {},
                         .params = parameters_of(runnable)};
  for (int rank = 0; rank < cell.world_size; ++rank) {
    facts.run.rank = rank;
    facts.groups = train::world_groups(cell.world_size);
    for (const GroupRecord& group : train::groups_within(cell, rank)) facts.groups.push_back(group);
    ranks_.push_back(std::make_unique<train::RankJudge>(facts));
  }
}

std::vector<RankObservers> ProgramJudge::observers() {
  std::vector<RankObservers> all;
  for (const auto& rank : ranks_) all.push_back(rank->observers());
  return all;
}

void ProgramJudge::attach(std::size_t rank, train::EngineTarget::Options& options) {
  options.models = &ranks_[rank]->models();
  options.autograd = &ranks_[rank]->models();
}

PropertiesReport ProgramJudge::finish(const SegmentRun& run) {
  RunGroup group;
  PropertiesReport report;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::exception_ptr& error = run.ranks[rank].error;
    ranks_[rank]->finish(!error || train::engine_error_of(error));
    group.add(ranks_[rank]->level(), "rank " + std::to_string(rank));
    report.merge(ranks_[rank]->report());
  }
  for (const RunGroup::FileReport& one : group.compare()) report.merge(one.report);
  return report;
}

}  // namespace zeroproof::program
