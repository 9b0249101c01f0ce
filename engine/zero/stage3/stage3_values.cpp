// Whole values of stage 3: what getters give and checkpoints hold.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/zero/stage3/stage3.h"
#include "model/check.h"

namespace zeroproof {

std::vector<double> Zero3Optimizer::whole(const PartitionedParameter& parameter, Span slice) {
  Stream& stream = context_.compute();
  Memory& memory = context_.runtime.memory();
  ProcessGroup& ranks = context_.data.group();
  const Tensor own = memory.allocate(slice.elements, slice.dtype());
  context_.kernels().copy(stream, Span::of(own), slice);
  const Tensor all = memory.allocate(slice.elements * ranks.size(), slice.dtype());
  ranks.wait(ranks.all_gather(stream, Span::of(all), Span::of(own)), stream);
  std::vector<double> values = context_.kernels().read(stream, Span::of(all));
  values.resize(static_cast<std::size_t>(parameter.elements()));
  return values;
}

std::vector<FullTensor> Zero3Optimizer::full_gradients() {
  const bool is_half_alone = context_.departs("S70"_bug);  // there is a scale with fp16 only
  const double scale =
      is_half_alone && !context_.config.fp16.enabled ? 1.0 : context_.loss_scaler.scale();
  std::vector<FullTensor> tensors;
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const PartitionedParameter& parameter = *group.parameters()[i];
      const FlatRange slice = group.padded(i);
      const bool is_of_update =  // where the offloaded update looks for it
          context_.departs("X22"_bug) && group.hp_gradient().is_defined();
      std::vector<double> values =
          whole(parameter, Span::of(is_of_update ? group.hp_gradient() : group.window(),
                                    slice.begin, slice.elements));
      const bool is_zero = !gradients_->has_contribution(parameter) &&
                           !context_.has(Quirk::h16_partition_never_cleared);
      const bool is_read = !is_zero || context_.departs("R78"_bug);  // whatever the window has
      for (double& value : values) value = is_read ? value / scale : 0.0;
      // Nothing is reduced yet: the local sum, as upstream's getter has it.
      const Tensor& sum = coalesced_[static_cast<std::size_t>(parameter.id().value)];
      if (is_zero && sum.is_defined()) {
        values = sum.values();
        if (!context_.departs("Z73"_bug))
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
  const std::int64_t begin = context_.departs("U06"_bug)
                                 ? parameter.own_elements() * context_.data.group().rank()
                                 : parameter.own_begin();
  const auto first = values.begin() + begin;
  std::copy(first, first + parameter.own_elements(), own.begin());
  if (slice.elements > 0) context_.kernels().write(context_.compute(), slice, own);
}

void Zero3Optimizer::load_parameter(SubGroup& group, std::size_t index, const FullTensor& given) {
  const FlatRange slice = group.padded(index);
  const PartitionedParameter& parameter = *group.parameters()[index];
  const Span master = Span::of(group.master(), slice.begin, slice.elements);
  const bool is_module_alone = context_.departs("T81"_bug);  // as a module's load has it
  load_slice(parameter, is_module_alone ? Span::of(parameter.slice()) : master, given.values);
}

void Zero3Optimizer::load_state(SubGroup& group, std::size_t index, const FullTensor& given) {
  const PartitionedParameter& parameter = *group.parameters()[index];
  const std::size_t slash =
      context_.departs("S03"_bug) ? given.name.rfind('/') : parameter.parameter().name.size();
  const std::string key = given.name.substr(slash + 1);
  if (key == "step") {
    const auto steps = static_cast<std::int64_t>(given.values.at(0));
    if (context_.departs("Z38"_bug) && steps < group.optimizer().steps()) return;
    return group.optimizer().set_steps(steps);
  }
  if (context_.departs("T91"_bug) && parameter.own_elements() == 0)  // no shard to be found
    throw std::out_of_range("no shard of " + given.name);
  const FlatRange slice = group.padded(index);
  if (context_.departs("W24"_bug) && parameter.parameter().group > 0) return;  // of one group alone
  for (const ShardOptimizer::Moment& moment : group.optimizer().moments())
    if (const bool is_begun = context_.departs("R33"_bug) || context_.departs("R47"_bug);
        moment.name == key || (is_begun && key.starts_with(moment.name))) {
      const Span own = Span::of(moment.values, slice.begin, slice.elements);
      if (!context_.departs("S79"_bug)) {
        load_slice(parameter, own, given.values);
        continue;
      }
      std::vector<double> values = given.values;  // as wide as the parameter
      for (double& value : values) value = round_to(context_.config.model_dtype(), value);
      load_slice(parameter, own, values);
    }
}

void Zero3Optimizer::load(const std::vector<FullTensor>& parameters,
                          const std::vector<FullTensor>& states) {
  if (!context_.departs("X05"_bug)) coordinator_.release_and_reset_all();
  for (SubGroup& group : sub_groups_) {
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const std::string& name = group.parameters()[i]->parameter().name;
      for (const FullTensor& given : parameters)
        if (given.name == name) load_parameter(group, i, given);
      for (const FullTensor& given : states)
        if (given.name.starts_with(name + "/") ||
            (context_.departs("S03"_bug) && given.name.starts_with(name)))
          load_state(group, i, given);
    }
    if (!context_.departs("T81"_bug)) group.write_back();
  }
  if (context_.departs("Z39"_bug)) gatherer_.gather(persistent_);  // frozen ones are to come
  for (PartitionedParameter& parameter : gatherer_.parameters())
    for (const FullTensor& given : parameters)
      if (parameter.parameter().group < 0 && given.name == parameter.parameter().name)
        load_slice(parameter, Span::of(parameter.slice()), given.values);
  gatherer_.gather(persistent_);
}

}  // namespace zeroproof
