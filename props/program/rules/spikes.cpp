#include "props/program/rules/spikes.h"

#include <set>
#include <string>

#include "props/program/forward_flow.h"

namespace zeroproof::program {

bool brings_spike(const Model& model, const Graph& graph, int loss) {
  if (!graph.forward || !graph.forward->spike) return false;
  const std::string& module = graph.forward->spike->module;
  const Module* const owner = find_module(model, module);
  if (owner && trained_of(*owner) == Trained::ungrouped) return false;
  const auto ran = graph.flow->ran.find(module);
  if (ran == graph.flow->ran.end() || (ran->second != -1 && ran->second != loss)) return false;
  const std::set<std::string>& tiled = graph.flow->tiled;
  const std::set<std::string>& reached =
      graph.flow->losses.at(static_cast<std::size_t>(loss)).weights;
  const auto has = [&](const std::string& weight) {
    return reached.contains(weight) || tiled.contains(weight);
  };
  return has(module) || has(module + "/bias") || has(module + "/1");
}

}  // namespace zeroproof::program
