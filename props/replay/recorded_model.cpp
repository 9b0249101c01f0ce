#include "props/replay/recorded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace zeroproof::recorded {
namespace {

using program::Module;
using program::ModuleList;
using program::Trained;

constexpr std::int64_t kSizeMax = 3;       // of a dimension: the structure counts, not the size
constexpr std::size_t kCustomWeights = 2;  // of one module of the language

std::string node_name(const std::string& module) {
  std::string name;
  for (const char c : module) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return std::isdigit(static_cast<unsigned char>(name.front())) != 0 ? "m" + name : name;
}

bool has_no_elements(const ParamRecord& param) {
  return std::ranges::find(param.shape, 0) != param.shape.end();
}

using OwnParams = std::vector<const ParamRecord*>;

// torch.nn.Linear, or what looks like one: a matrix called weight, perhaps a bias.
bool is_linear(const OwnParams& params) {
  const auto is_named = [](const ParamRecord& param, const char* name) {
    return param.name.ends_with(name);
  };
  if (!is_named(*params[0], "weight") || params[0]->shape.size() != 2) return false;
  return params.size() == 1 || (params.size() == 2 && is_named(*params[1], "bias"));
}

Module linear_node(const std::string& name, const OwnParams& params) {
  program::Linear linear{.has_bias = params.size() == 2};
  linear.outputs = static_cast<int>(std::min(params[0]->shape[0], kSizeMax));
  linear.inputs = static_cast<int>(std::clamp<std::int64_t>(params[0]->shape[1], 1, kSizeMax));
  if (!params[0]->requires_grad)
    linear.trained =
        linear.has_bias && params[1]->requires_grad ? Trained::bias_only : Trained::frozen;
  return {name, linear};
}

ModuleList custom_nodes(const std::string& name, const OwnParams& params) {
  ModuleList nodes;
  for (std::size_t first = 0; first < params.size(); first += kCustomWeights) {
    program::Custom custom;
    if (has_no_elements(*params[first])) custom.shape = {0};
    custom.weights = static_cast<int>(std::min(kCustomWeights, params.size() - first));
    if (!params[first]->requires_grad) custom.trained = Trained::frozen;
    nodes.push_back({first == 0 ? name : fmt::format("{}_{}", name, first), custom});
  }
  return nodes;
}

class ModelMaker {
 public:
  ModelMaker(const Job& job, const std::string& name) : job_(job) {
    made_.model.name = name;
    for (const ParamRecord& param : job.params) owned_[owner_of(param.name)].push_back(&param);
    for (const Entry& entry : job.entries)
      if (entry.act == Act::forward)
        for (const ModuleCall& call : job.forwards[entry.index].calls)
          all_called_.insert(call.module);
  }

  void add(const Forward& forward) {
    std::set<std::string> seen;
    for (const ModuleCall& call : forward.calls) {
      if (!owned_.contains(call.module)) continue;
      if (!seen.insert(call.module).second)
        add_again(call);
      else if (!made_.nodes.contains(call.module))
        add_first(call);
    }
    is_first_ = false;
  }

  void add_uncalled() {
    ModuleList unused;
    for (const auto& [module, params] : owned_) {
      if (all_called_.contains(module) || module == kRootModule) continue;
      for (Module& node : nodes_of(module)) unused.push_back(std::move(node));
    }
    if (!unused.empty()) made_.model.body.push_back({"unused", program::Unused{std::move(unused)}});
    if (owned_.contains(kRootModule)) append(nodes_of(kRootModule), -1);
  }

  RecordedModel take() { return std::move(made_); }

 private:
  ModuleList nodes_of(const std::string& module) {
    const OwnParams& params = owned_.at(module);
    const std::string name = node_name(module);
    ModuleList nodes =
        is_linear(params) ? ModuleList{linear_node(name, params)} : custom_nodes(name, params);
    for (const Module& node : nodes) made_.nodes[module].push_back(node.name);
    return nodes;
  }

  void add_first(const ModuleCall& call) {
    append(nodes_of(call.module), call.checkpoint);
    made_.called.push_back(call.module);
  }

  // A module that runs more than once in a forward; later forwards do the same.
  void add_again(const ModuleCall& call) {
    if (!is_first_) return;
    for (const std::string& node : made_.nodes[call.module])
      append({{fmt::format("{}_again{}", node, ++again_), program::Shared{node}}}, call.checkpoint);
  }

  void append(ModuleList nodes, std::int64_t checkpoint) {
    ModuleList* into = &made_.model.body;
    if (checkpoint >= 0) {
      if (checkpoint != checkpoint_)
        into->push_back(
            {fmt::format("checkpoint{}", checkpoint),
             program::Checkpoint{.is_reentrant = job_.reentrant.contains(checkpoint), .body = {}}});
      into = &std::get<program::Checkpoint>(into->back().kind).body;
    }
    checkpoint_ = checkpoint;
    for (Module& node : nodes) into->push_back(std::move(node));
  }

  const Job& job_;
  RecordedModel made_;
  std::map<std::string, OwnParams> owned_;  // by module
  std::set<std::string> all_called_;        // of all engines
  bool is_first_ = true;
  std::int64_t checkpoint_ = -1;
  int again_ = 0;
};

}  // namespace

bool RecordedModel::runs_any(const Forward& forward) const {
  return std::ranges::any_of(forward.calls,
                             [&](const ModuleCall& call) { return nodes.contains(call.module); });
}

std::vector<std::string> RecordedModel::skipped(const Forward& forward) const {
  std::vector<std::string> found;
  for (const std::string& module : called) {
    const bool runs =
        std::ranges::find(forward.calls, module, &ModuleCall::module) != forward.calls.end();
    if (!runs) found.insert(found.end(), nodes.at(module).begin(), nodes.at(module).end());
  }
  return found;
}

RecordedModel model_of(const Job& job, EngineId engine, const std::string& name,
                       bool takes_uncalled) {
  ModelMaker maker(job, name);
  for (const Entry& entry : job.entries)
    if (entry.act == Act::forward && entry.engine == engine) maker.add(job.forwards[entry.index]);
  if (takes_uncalled) maker.add_uncalled();
  return maker.take();
}

}  // namespace zeroproof::recorded
