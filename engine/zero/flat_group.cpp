#include "engine/zero/flat_group.h"

#include <algorithm>
#include <utility>

#include "model/check.h"

namespace zeroproof {
namespace {

// Slices start at addresses that NCCL likes (docs/spec/zero.md 2.15).
constexpr std::int64_t kNcclStartAlignment = 2;

std::vector<std::int64_t> sizes_of(const std::vector<ZeroParameter*>& parameters) {
  std::vector<std::int64_t> sizes;
  for (const ZeroParameter* parameter : parameters) sizes.push_back(parameter->elements);
  return sizes;
}

}  // namespace

FlatGroup::FlatGroup(ZeroContext& context, std::vector<ZeroParameter*> parameters, int ranks,
                     int rank)
    : context_(context),
      parameters_(std::move(parameters)),
      partition_(sizes_of(parameters_), ranks, kNcclStartAlignment),
      own_(partition_.slice(rank)),
      flat_(context.runtime.memory().allocate(partition_.elements(), context.config.model_dtype())),
      master_(context.runtime.memory().allocate(own_.elements, context.config.master_dtype(),
                                                optimizer_placement(context.config))),
      optimizer_(context.runtime, context.config, own_.elements),
      grad_accumulator_(context.runtime.memory().allocate(own_.elements,
                                                          context.config.accumulation_dtype(),
                                                          optimizer_placement(context.config))) {
  Kernels& kernels = context.kernels();
  kernels.fill(context.compute(), Span::of(flat_), 0.0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    ZeroParameter& parameter = *parameters_[i];
    const FlatRange range = partition_.parameter(i);
    kernels.copy(context.compute(), Span::of(flat_, range.begin, range.elements),
                 Span::of(parameter.tensor));
    const Shape sizes = parameter.sizes;
    parameter.tensor.set_data(flat_.as_strided(sizes, contiguous_strides(sizes), range.begin));
  }
  kernels.copy(context.compute(), Span::of(master_), own_values());
}

Span FlatGroup::add_to_accumulator() {
  if (!has_accumulated_)
    context_.kernels().fill(context_.compute(), Span::of(grad_accumulator_), 0.0);
  has_accumulated_ = true;
  return Span::of(grad_accumulator_);
}

Span FlatGroup::overwrite_accumulator() {
  ZP_CHECK(!has_accumulated_, "a window that has gradients is written again");
  return Span::of(grad_accumulator_);
}

Span FlatGroup::step_gradient() {
  return boundary_copy_.is_defined() ? Span::of(boundary_copy_) : add_to_accumulator();
}

Span FlatGroup::open_boundary_copy() {
  if (!boundary_copy_.is_defined()) {
    boundary_copy_ = context_.runtime.memory().allocate(own_.elements, grad_accumulator_.dtype(),
                                                        Placement::host);
    context_.kernels().fill(context_.compute(), Span::of(boundary_copy_), 0.0);
  }
  return Span::of(boundary_copy_);
}

Span FlatGroup::open_pending() {
  Stream& stream = context_.reduction();
  if (!pending_.is_defined())
    pending_ = context_.runtime.memory().allocate(own_.elements, grad_accumulator_.dtype());
  if (!has_pending_) context_.kernels().fill(stream, Span::of(pending_), 0.0);
  has_pending_ = true;
  return Span::of(pending_);
}

void FlatGroup::commit_pending() {
  if (!has_pending_) return;
  if (has_accumulated_) {
    context_.kernels().add(context_.compute(), Span::of(grad_accumulator_), Span::of(pending_));
  } else {
    context_.kernels().copy(context_.compute(), Span::of(grad_accumulator_), Span::of(pending_));
  }
  has_accumulated_ = true;
  drop_pending();
}

void FlatGroup::drop_pending() {
  has_pending_ = false;
  if (pending_.is_defined()) context_.reduction().record_use(pending_);
  pending_ = {};
}

void FlatGroup::add_pending(std::size_t index, Span source) {
  const FlatRange mine = owned(index);
  if (mine.elements == 0) return;
  const std::int64_t within = mine.begin - partition_.parameter(index).begin;
  const Span target = open_pending().part(mine.begin - own_.begin, mine.elements);
  Stream& stream = context_.reduction();
  context_.kernels().add(stream, target, source.part(within, mine.elements));
}

void FlatGroup::update(Span gradient, const GradientDivisor& divisor) {
  begin_update();
  update_part(gradient, divisor, {0, own_.elements});
}

void FlatGroup::update_part(Span gradient, const GradientDivisor& divisor, const FlatRange& part) {
  const auto of = [&part](Span span) { return span.part(part.begin, part.elements); };
  const Span values = of(own_values());
  const std::int64_t begin = part.begin;
  optimizer_.update_part(context_.compute(), begin, of(Span::of(master_)), of(gradient), divisor,
                         values);
}

void FlatGroup::write_back() {
  context_.kernels().copy(context_.compute(), own_values(), Span::of(master_));
}

}  // namespace zeroproof
