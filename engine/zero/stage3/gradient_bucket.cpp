#include "engine/zero/stage3/gradient_bucket.h"

#include <algorithm>

namespace zeroproof {
namespace {

constexpr std::size_t kUsualProducers = 4;

}  // namespace

GradientBucket::GradientBucket(ZeroContext& context, DType communication_dtype)
    : context_(context),
      communication_dtype_(communication_dtype),
      elements_max_(context.config.reduce_bucket_size),
      has_streams_(!context.runtime.device().is_cpu()),
      direct_max_(has_streams_ ? -1 : elements_max_),
      is_held_(context.parameters.size()) {
  parameters_.reserve(context.parameters.size());
  taken_.reserve(context.parameters.size());
  producers_.reserve(kUsualProducers);
}

bool GradientBucket::is_full_for(std::int64_t elements) const {
  return elements_ > 0 && elements_ + elements > elements_max_;
}

void GradientBucket::note_producer() {
  const StreamIndex stream = context_.autograd.current_stream(context_.runtime.device());
  if (std::ranges::find(producers_, stream) == producers_.end()) producers_.push_back(stream);
}

void GradientBucket::order_before(Stream& reduction) const {
  const StreamIndex current = context_.autograd.current_stream(context_.runtime.device());
  reduction.wait(context_.runtime.user_stream(current));
  if (context_.upstream.reuse_waits_current_stream) return;
  for (const StreamIndex stream : producers_)
    if (stream != current) reduction.wait(context_.runtime.user_stream(stream));
}

const ParameterList& GradientBucket::take_all() {
  taken_.swap(parameters_);
  for (const PartitionedParameter* parameter : taken_) is_held_[place(parameter->parameter())] = 0;
  std::ranges::sort(taken_, {}, [](const PartitionedParameter* p) { return p->id(); });
  clear();
  return taken_;
}

void GradientBucket::clear() {
  for (const PartitionedParameter* parameter : parameters_)
    is_held_[place(parameter->parameter())] = 0;
  parameters_.clear();
  producers_.clear();
  elements_ = 0;
}

}  // namespace zeroproof
