#include "props/interpreter/judged_ranks.h"

#include <string>

#include "props/interpreter/observe.h"
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

std::vector<train::RankFacts> judged_ranks(const RunnableProgram& runnable) {
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
  std::vector<train::RankFacts> ranks;
  for (int rank = 0; rank < cell.world_size; ++rank) {
    facts.run.rank = rank;
    facts.groups = train::world_groups(cell.world_size);
    for (const GroupRecord& group : train::groups_within(cell, rank)) facts.groups.push_back(group);
    ranks.push_back(facts);
  }
  return ranks;
}

}  // namespace zeroproof::program
