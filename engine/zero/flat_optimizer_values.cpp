// Whole values of stages 0 to 2: what getters give and checkpoints hold.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/zero/flat_optimizer.h"
#include "engine/zero/whole_values.h"
#include "model/check.h"

namespace zeroproof {
namespace {

// Windows that were opened to be read, and are closed again where a gather fails, too.
class ClosedAfterwards {
 public:
  ClosedAfterwards(std::deque<FlatGroup>& groups, bool closes) : groups_(groups), closes_(closes) {}
  ~ClosedAfterwards() {
    for (FlatGroup& group : groups_)
      if (closes_) group.clear_accumulator();
  }
  ClosedAfterwards(const ClosedAfterwards&) = delete;
  ClosedAfterwards& operator=(const ClosedAfterwards&) = delete;

 private:
  std::deque<FlatGroup>& groups_;
  bool closes_;
};

}  // namespace

// A group's buffer from the slices of all ranks that share it.
std::vector<double> FlatOptimizer::whole(const FlatGroup& group, const Tensor& slice) const {
  Stream& stream = context_.compute();
  if (group.partition().ranks() == 1) return context_.kernels().read(stream, Span::of(slice));
  return gather_slices(context_, Span::of(slice));
}

template <class SliceOf>
std::vector<FullTensor> FlatOptimizer::full(const char* suffix, SliceOf slice_of) {
  std::vector<FullTensor> tensors;
  for (FlatGroup& group : groups_) {
    const std::vector<double> values = whole(group, slice_of(group));
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const ZeroParameter& parameter = *group.parameters()[i];
      const auto first = values.begin() + group.partition().parameter(i).begin;
      tensors.push_back(
          {parameter.name + suffix, parameter.sizes, {first, first + parameter.elements}});
    }
  }
  return tensors;
}

std::vector<FullTensor> FlatOptimizer::full_gradients() {
  const auto is_open = [](const FlatGroup& group) { return group.has_accumulated(); };
  const bool has_window = std::ranges::any_of(groups_, is_open);
  const double scale = context_.loss_scaler.scale();
  std::vector<FullTensor> gradients;
  {
    const ClosedAfterwards closed(groups_, !has_window);
    gradients = full("", [](FlatGroup& group) {
      group.step_gradient();
      return group.grad_accumulator();
    });
  }
  if (!has_window) {
    // No gradient is reduced yet: the local sums, as upstream's getter has them.
    std::size_t next = 0;
    for (const FlatGroup& group : groups_)
      for (const ZeroParameter* parameter : group.parameters()) {
        const Tensor& sum = accumulated(*parameter);
        if (sum.is_defined()) gradients[next].values = sum.values();
        ++next;
      }
  }
  for (FullTensor& gradient : gradients)
    for (double& value : gradient.values) value /= scale;
  for (const ZeroParameter& parameter : context_.parameters)
    if (slot(parameter).group == nullptr)
      gradients.push_back({parameter.name, parameter.sizes, {}});
  return gradients;
}

std::vector<FullTensor> FlatOptimizer::full_parameters() {
  std::vector<FullTensor> tensors = full("", [](FlatGroup& group) { return group.master(); });
  for (const ZeroParameter& parameter : context_.parameters)
    if (slot(parameter).group == nullptr)
      tensors.push_back({parameter.name, parameter.sizes, parameter.tensor.values()});
  return tensors;
}

std::vector<FullTensor> FlatOptimizer::full_optimizer_state() {
  std::vector<FullTensor> states;
  for (FlatGroup& group : groups_)
    for (const ZeroParameter* parameter : group.parameters())
      states.push_back(
          {parameter->name + "/step", {}, {static_cast<double>(group.optimizer().steps())}});
  const std::size_t moments = groups_.empty() ? 0 : groups_.front().optimizer().moments().size();
  for (std::size_t m = 0; m < moments; ++m) {
    const std::string suffix = "/" + std::string(groups_.front().optimizer().moments()[m].name);
    const auto part = full(suffix.c_str(),
                           [m](FlatGroup& group) { return group.optimizer().moments()[m].values; });
    states.insert(states.end(), part.begin(), part.end());
  }
  return states;
}

void FlatOptimizer::load_slice(FlatGroup& group, const Tensor& slice, const char* suffix,
                               const std::vector<FullTensor>& values) const {
  std::vector<double> flat(static_cast<std::size_t>(group.partition().elements()), 0.0);
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    std::string name = group.parameters()[i]->name + suffix;
    const auto at = std::ranges::find(values, name, &FullTensor::name);
    ZP_CHECK(at != values.end(), "a checkpoint was verified to have every value: " + name);
    std::ranges::copy(at->values, flat.begin() + group.partition().parameter(i).begin);
  }
  std::int64_t begin = group.own().begin;
  const auto first = flat.begin() + begin;
  context_.kernels().write(context_.compute(), Span::of(slice),
                           {first, first + group.own().elements});
}

void FlatOptimizer::load_groups(const std::vector<FullTensor>& parameters,
                                const std::vector<FullTensor>& states) {
  for (FlatGroup& group : groups_) {
    load_slice(group, group.master(), "", parameters);
    for (const ShardOptimizer::Moment& moment : group.optimizer().moments())
      load_slice(group, moment.values, ("/" + std::string(moment.name)).c_str(), states);
    const std::string step = group.parameters().front()->name + "/step";
    const auto at = std::ranges::find(states, step, &FullTensor::name);
    if (at != states.end())
      group.optimizer().set_steps(static_cast<std::int64_t>(at->values.front()));
    group.write_back();
  }
  for (const ZeroParameter& parameter : context_.parameters) {
    if (slot(parameter).group != nullptr) continue;
    const auto at = std::ranges::find(parameters, parameter.name, &FullTensor::name);
    ZP_CHECK(at != parameters.end(), "a checkpoint was verified to have " + parameter.name);
    context_.kernels().write(context_.compute(), Span::of(parameter.tensor), at->values);
  }
  gather_parameters();
}

}  // namespace zeroproof
