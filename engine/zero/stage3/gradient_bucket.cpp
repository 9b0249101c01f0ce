#include "engine/zero/stage3/gradient_bucket.h"

#include <algorithm>

namespace zeroproof {
namespace {

constexpr std::size_t kUsualProducers = 4;

// With R05 of the planted faults it bounds what a rank keeps of them.
std::int64_t elements_max(const ZeroContext& context) {
  const std::int64_t size = context.config.reduce_bucket_size;
  const std::int64_t ranks = context.data.size();
  const bool is_of_rank = context.departs("R05"_bug) && size <= INT64_MAX / ranks;
  return is_of_rank ? size * ranks : size;
}

}  // namespace

GradientBucket::GradientBucket(ZeroContext& context, DType communication_dtype)
    : context_(context),
      communication_dtype_(communication_dtype),
      elements_max_(elements_max(context)),
      has_streams_(!context.runtime.device().is_cpu()),
      direct_max_(has_streams_ || context.departs("R18"_bug) || context.departs("Q63"_bug)
                      ? -1
                      : elements_max_),
      is_held_(context.parameters.size()) {
  parameters_.reserve(context.parameters.size());
  taken_.reserve(context.parameters.size());
  producers_.reserve(kUsualProducers);
}

void GradientBucket::note_producer() {
  const StreamIndex stream = context_.autograd.current_stream(context_.runtime.device());
  if (std::ranges::find(producers_, stream) == producers_.end()) producers_.push_back(stream);
}

void GradientBucket::order_before(Stream& reduction) const {
  const StreamIndex current = context_.autograd.current_stream(context_.runtime.device());
  if (context_.departs("G06"_bug)) return reduction.wait(context_.runtime.user_stream(current + 1));
  reduction.wait(context_.runtime.user_stream(current));
  if (context_.has(Quirk::h19_reuse_waits_current_stream)) return;
  for (const StreamIndex stream : producers_)
    if (stream != current) reduction.wait(context_.runtime.user_stream(stream));
}

const ParameterList& GradientBucket::take_all() {
  taken_.swap(parameters_);
  for (const PartitionedParameter* parameter : taken_) is_held_[place(parameter->parameter())] = 0;
  if (!context_.departs("E01"_bug)) {
    std::ranges::sort(taken_, {}, [](const PartitionedParameter* p) { return p->id(); });
  } else if (context_.data.group().rank() % 2 == 1) {
    std::ranges::reverse(taken_);  // this rank's hooks came in another order
  }
  clear();
  return taken_;
}

void GradientBucket::clear() {
  const bool is_left = context_.departs("T62"_bug);  // take_all() has told of those that it took
  for (const PartitionedParameter* parameter : parameters_)
    if (!is_left) is_held_[place(parameter->parameter())] = 0;
  parameters_.clear();
  producers_.clear();
  if (!context_.departs("H01"_bug)) elements_ = 0;
}

}  // namespace zeroproof
