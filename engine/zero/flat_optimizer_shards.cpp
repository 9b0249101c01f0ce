// What a rank has of the master weights and states in stages 0 to 2, for checkpoints of shards.
#include "engine/zero/flat_optimizer.h"

namespace zeroproof {

std::vector<StateShard> FlatOptimizer::state_shards() {
  const bool is_first = context_.data.group().rank() == 0;
  std::vector<StateShard> shards;
  const auto add = [&](const FlatGroup& group, std::string_view key, const Tensor& slice) {
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const ZeroParameter& parameter = *group.parameters()[i];
      const FlatRange own = group.owned(i);
      const std::int64_t whole_begin = group.partition().parameter(i).begin;
      const std::int64_t begin = own.elements > 0 ? own.begin : whole_begin;
      shards.push_back({.parameter = parameter.name,
                        .key = std::string(key),
                        .sizes = parameter.sizes,
                        .begin = begin - whole_begin,
                        .values = own.elements > 0
                                      ? Span::of(slice, own.begin - group.own().begin, own.elements)
                                      : Span{},
                        .is_saved = is_first || group.partition().ranks() > 1});
    }
  };
  for (FlatGroup& group : groups_) {
    add(group, "fp32", group.master());
    for (const ShardOptimizer::Moment& moment : group.optimizer().moments())
      add(group, moment.name, moment.values);
  }
  for (const ZeroParameter& parameter : context_.parameters)
    if (slot(parameter).group == nullptr)
      shards.push_back({.parameter = parameter.name,
                        .key = "fp32",
                        .sizes = parameter.sizes,
                        .begin = 0,
                        .values = Span::of(parameter.tensor),
                        .is_saved = is_first});
  return shards;
}

StepCounts FlatOptimizer::step_counts() {
  StepCounts steps;
  for (FlatGroup& group : groups_)
    for (const ZeroParameter* parameter : group.parameters())
      steps[parameter->name] = group.optimizer().steps();
  return steps;
}

void FlatOptimizer::finish_shard_load(const StepCounts& steps) {
  for (FlatGroup& group : groups_) {
    const auto at = steps.find(group.parameters().front()->name);
    if (at != steps.end()) group.optimizer().set_steps(at->second);
    group.write_back();
  }
  gather_parameters();
  zero_grad();
}

}  // namespace zeroproof
