#include "engine/zero/stage3/sub_group.h"

#include <utility>

namespace zeroproof {
SubGroup::SubGroup(ZeroContext& context, ParameterList parameters)
    : context_(context),
      parameters_(std::move(parameters)),
      elements_(slices_of(parameters_)),
      optimizer_(context.runtime, context.config, elements_) {
  const ZeroConfig& config = context.config;
  Memory& memory = context.runtime.memory();
  master_ = memory.allocate(elements_, config.master_dtype(), optimizer_placement(config));
  const DType summed = config.accumulation_dtype();
  grad_accumulator_ = memory.allocate(elements_, summed, optimizer_placement(config));
  Kernels& kernels = context.kernels();
  kernels.fill(context.compute(), Span::of(grad_accumulator_), 0.0);
  if (config.is_offloaded()) {
    hp_gradient_ = memory.allocate(elements_, config.master_dtype(), Placement::host);
    kernels.fill(context.compute(), Span::of(hp_gradient_), 0.0);
  }
  std::int64_t offset = 0;
  for (const PartitionedParameter* parameter : parameters_) {
    offsets_.push_back(offset);
    offset += parameter->slice_elements();
  }
  join_slices();
  read_slices();
}

// Where all are of one dtype, on the device.
void SubGroup::join_slices() {
  if (context_.config.offload_param == OffloadDevice::cpu || parameters_.empty()) return;
  const DType dtype = parameters_.front()->slice().dtype();
  for (const PartitionedParameter* parameter : parameters_)
    if (parameter->slice().dtype() != dtype) return;
  slices_ = context_.runtime.memory().allocate(elements_, dtype);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i]->move_slice(slices_.as_strided({padded(i).elements}, {1}, padded(i).begin));
}

const Tensor& SubGroup::open_pending() {
  if (!pending_.is_defined())
    pending_ = context_.runtime.memory().allocate(elements_, context_.config.accumulation_dtype());
  return pending_;
}

void SubGroup::close_pending(Stream& reduction) {
  if (pending_.is_defined()) reduction.record_use(pending_);
  pending_ = {};
}

void SubGroup::update(Span gradient, const GradientDivisor& divisor) {
  const Span slices = slices_.is_defined() ? Span::of(slices_) : Span{};
  optimizer_.step(context_.compute(), Span::of(master_), gradient, divisor, slices);
  if (!slices_.is_defined()) write_back();
}

void SubGroup::write_back() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    context_.kernels().copy(context_.compute(), Span::of(parameters_[i]->slice()),
                            Span::of(master_, padded(i).begin, padded(i).elements));
}

void SubGroup::read_slices() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    context_.kernels().copy(context_.compute(),
                            Span::of(master_, padded(i).begin, padded(i).elements),
                            Span::of(parameters_[i]->slice()));
}

}  // namespace zeroproof
