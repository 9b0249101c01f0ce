// What a rank has of the master weights and states in stage 3, for checkpoints of shards.
#include "engine/zero/stage3/stage3.h"

namespace zeroproof {

std::vector<StateShard> Zero3Optimizer::state_shards() {
  std::vector<StateShard> shards;
  const auto add = [&](const PartitionedParameter& parameter, std::string_view key,
                       const Tensor& of, std::int64_t offset) {
    const std::int64_t elements = parameter.own_elements();
    shards.push_back({.parameter = parameter.parameter().name,
                      .key = std::string(key),
                      .sizes = parameter.parameter().sizes,
                      .begin = elements > 0 ? parameter.own_begin() : 0,
                      .values = elements > 0 ? Span::of(of, offset, elements) : Span{}});
  };
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const PartitionedParameter& parameter = *group.parameters()[i];
      add(parameter, "fp32", group.master(), group.own(i).begin);
      for (const ShardOptimizer::Moment& moment : group.optimizer().moments())
        add(parameter, moment.name, moment.values, group.own(i).begin);
    }
  for (const PartitionedParameter& parameter : gatherer_.parameters())
    if (parameter.parameter().group < 0) add(parameter, "fp32", parameter.slice(), 0);
  return shards;
}

StepCounts Zero3Optimizer::step_counts() {
  StepCounts steps;
  for (SubGroup& group : sub_groups_)
    for (const PartitionedParameter* parameter : group.parameters())
      steps[parameter->parameter().name] = group.optimizer().steps();
  return steps;
}

void Zero3Optimizer::begin_shard_load() {
  coordinator_.release_and_reset_all();
}

void Zero3Optimizer::finish_shard_load(const StepCounts& steps) {
  for (SubGroup& group : sub_groups_) {
    const auto at = steps.find(group.parameters().front()->parameter().name);
    if (at != steps.end()) group.optimizer().set_steps(at->second);
    group.write_back();
  }
  gatherer_.gather(persistent_);
}

}  // namespace zeroproof
