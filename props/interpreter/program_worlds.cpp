#include "props/interpreter/program_worlds.h"

#include <algorithm>
#include <set>
#include <string>

#include "props/interpreter/observe.h"
#include "props/interpreter/program_unseen.h"
#include "props/train/reference_worlds.h"

namespace zeroproof::program {
namespace {

// Modules that the model makes leaves by a call.
std::vector<std::string> leaves_of(const Program& program, const EngineSpec& spec,
                                   TreeModule& module) {
  std::set<std::string> nodes;
  for (const Module* const node : nodes_of(program.model_of(spec.name))) {
    const auto* const experts = std::get_if<Experts>(&node->kind);
    if (experts && experts->leaf_by == LeafBy::call) nodes.insert(node->name);
  }
  std::vector<std::string> names;
  for (const nn::NamedModule& named : module.named_modules())
    for (const std::string& node : nodes)
      if (module.module_of(node) == named.module) names.push_back(named.name);
  return names;
}

void mark_returned(const Model& model, TreeModule& module, reference::World& world) {
  const std::set<std::string> returned = returned_weights_of(model);
  const auto parameters = module.named_parameters();
  for (std::size_t id = 0; id < parameters.size(); ++id)
    world.parameters[id].is_returned = std::ranges::any_of(returned, [&](const auto& node) {
      return module.weight_of(node).is_same(parameters[id].tensor);
    });
}

}  // namespace

std::vector<reference::World> program_worlds(const RunnableProgram& runnable,
                                             const EngineVariant& variant) {
  const Program& program = runnable.program();
  const RunnableProgram::Segment& segment = runnable.segments().back();
  const int size = segment.ranks * program.world.tensor;
  std::vector<reference::World> worlds;
  for (std::size_t i = 0; i < program.engines.size(); ++i) {
    const EngineSpec& spec = program.engines[i];
    TreeModule module(program.model_of(spec.name), runnable.data().table(spec.name), {});
    const reference::WorldOptions options{
        .ranks = segment.ranks,
        .sequence_ranks = program.world.sequence,
        .tensor_ranks = program.world.tensor,
        .prefix = engine_prefix(program, i),
        .skips_frames = program.world.skips_frames && segment.config.stage == 3,
        .other_groups = train::tensor_group_names(size, program.world.tensor),
        .groups = parameter_groups_of(program, i, module),
        .leaves = segment.config.stage == 3 ? leaves_of(program, spec, module)
                                            : std::vector<std::string>(),
        .unseen = unseen_of(program, spec)};
    reference::World world = reference::world_of(segment.config, module, options);
    mark_returned(program.model_of(spec.name), module, world);
    world.counts_hooks = variant.policy != "exact";
    if (!variant.quirks.is_empty()) world.dialect = reference::Dialect::upstream;
    worlds.push_back(std::move(world));
  }
  return worlds;
}

}  // namespace zeroproof::program
