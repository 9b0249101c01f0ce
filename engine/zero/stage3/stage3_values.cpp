// Whole values of stage 3: what getters give and checkpoints hold.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/zero/stage3/stage3.h"
#include "engine/zero/whole_values.h"
#include "model/check.h"

namespace zeroproof {

std::vector<double> Zero3Optimizer::whole(const PartitionedParameter& parameter, Span slice) {
  std::vector<double> values = gather_slices(context_, slice);
  values.resize(static_cast<std::size_t>(parameter.elements()));
  return values;
}

std::vector<FullTensor> Zero3Optimizer::full_gradients() {
  const double scale = context_.loss_scaler.scale();
  std::vector<FullTensor> tensors;
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const PartitionedParameter& parameter = *group.parameters()[i];
      const FlatRange slice = group.padded(i);
      std::vector<double> values =
          whole(parameter, Span::of(group.grad_accumulator(), slice.begin, slice.elements));
      const bool is_zero =
          !gradients_->has_contribution(parameter) && !context_.upstream.partition_never_cleared;
      for (double& value : values) value = !is_zero ? value / scale : 0.0;
      // No gradient is reduced yet: the local sum, as upstream's getter has it.
      const Tensor& sum = coalesced_[static_cast<std::size_t>(parameter.id().value)];
      if (is_zero && sum.is_defined()) {
        values = sum.values();
        for (double& value : values) value /= scale;
      }
      tensors.push_back({parameter.parameter().name, parameter.parameter().sizes, values});
    }
  for (const ZeroParameter& parameter : context_.parameters)
    if (parameter.group < 0) tensors.push_back({parameter.name, parameter.sizes, {}});
  return tensors;
}

std::vector<FullTensor> Zero3Optimizer::full_parameters() {
  std::vector<FullTensor> tensors;
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const PartitionedParameter& parameter = *group.parameters()[i];
      const FlatRange slice = group.padded(i);
      tensors.push_back({parameter.parameter().name, parameter.parameter().sizes,
                         whole(parameter, Span::of(group.master(), slice.begin, slice.elements))});
    }
  for (PartitionedParameter& parameter : gatherer_.parameters())
    if (parameter.parameter().group < 0)
      tensors.push_back({parameter.parameter().name, parameter.parameter().sizes,
                         whole(parameter, Span::of(parameter.slice()))});
  return tensors;
}

std::vector<FullTensor> Zero3Optimizer::full_optimizer_state() {
  std::vector<FullTensor> tensors;
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const PartitionedParameter& parameter = *group.parameters()[i];
      const FlatRange slice = group.padded(i);
      for (const ShardOptimizer::Moment& moment : group.optimizer().moments())
        tensors.push_back({parameter.parameter().name + "/" + std::string(moment.name),
                           parameter.parameter().sizes,
                           whole(parameter, Span::of(moment.values, slice.begin, slice.elements))});
      tensors.push_back({parameter.parameter().name + "/step",
                         {},
                         {static_cast<double>(group.optimizer().steps())}});
    }
  return tensors;
}

void Zero3Optimizer::load_slice(const PartitionedParameter& parameter, Span slice,
                                const std::vector<double>& values) {
  ZP_CHECK(std::ssize(values) == parameter.elements(), "a whole tensor has all elements");
  std::vector<double> own(static_cast<std::size_t>(slice.elements), 0.0);
  const std::int64_t begin = parameter.own_begin();
  const auto first = values.begin() + begin;
  std::copy(first, first + parameter.own_elements(), own.begin());
  if (slice.elements > 0) context_.kernels().write(context_.compute(), slice, own);
}

void Zero3Optimizer::load_parameter(SubGroup& group, std::size_t index, const FullTensor& given) {
  const FlatRange slice = group.padded(index);
  const PartitionedParameter& parameter = *group.parameters()[index];
  const Span master = Span::of(group.master(), slice.begin, slice.elements);
  load_slice(parameter, master, given.values);
}

void Zero3Optimizer::load_state(SubGroup& group, std::size_t index, const FullTensor& given) {
  const PartitionedParameter& parameter = *group.parameters()[index];
  const std::size_t slash = parameter.parameter().name.size();
  const std::string key = given.name.substr(slash + 1);
  if (key == "step") {
    const auto steps = static_cast<std::int64_t>(given.values.at(0));
    return group.optimizer().set_steps(steps);
  }
  const FlatRange slice = group.padded(index);
  for (const ShardOptimizer::Moment& moment : group.optimizer().moments())
    if (moment.name == key) {
      const Span own = Span::of(moment.values, slice.begin, slice.elements);
      load_slice(parameter, own, given.values);
      continue;
    }
}

void Zero3Optimizer::load(const std::vector<FullTensor>& parameters,
                          const std::vector<FullTensor>& states) {
  coordinator_.release_and_reset_all();
  for (SubGroup& group : sub_groups_) {
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const std::string& name = group.parameters()[i]->parameter().name;
      for (const FullTensor& given : parameters)
        if (given.name == name) load_parameter(group, i, given);
      for (const FullTensor& given : states)
        if (given.name.starts_with(name + "/")) load_state(group, i, given);
    }
    group.write_back();
  }
  for (PartitionedParameter& parameter : gatherer_.parameters())
    for (const FullTensor& given : parameters)
      if (parameter.parameter().group < 0 && given.name == parameter.parameter().name)
        load_slice(parameter, Span::of(parameter.slice()), given.values);
  gatherer_.gather(persistent_);
}

}  // namespace zeroproof
