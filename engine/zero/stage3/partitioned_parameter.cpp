#include "engine/zero/stage3/partitioned_parameter.h"

#include <algorithm>
#include <set>

#include "model/check.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {

std::string_view zero_param_status_name(ZeroParamStatus status) {
  switch (status) {
    case ZeroParamStatus::not_available:
      return "NOT_AVAILABLE";
    case ZeroParamStatus::inflight:
      return "INFLIGHT";
    case ZeroParamStatus::available:
      break;
  }
  return "AVAILABLE";
}

PartitionedParameter::PartitionedParameter(ZeroContext& context, ZeroParameter& parameter)
    : context_(context), parameter_(parameter) {
  const ProcessGroup& ranks = context.data.group();
  slice_elements_ = (parameter.elements + ranks.size() - 1) / ranks.size();
  own_begin_ = std::min(slice_elements_ * ranks.rank(), parameter.elements);
  own_elements_ = elements_of(ranks.rank());
  const OffloadDevice offload = context.config.offload_param;
  const Placement placement = offload == OffloadDevice::cpu ? Placement::host : Placement::device;
  slice_ = context.runtime.memory().allocate(slice_elements_, parameter.tensor.dtype(), placement);
  context.kernels().fill(context.compute(), Span::of(slice_), 0.0);
  take_slice(Span::of(parameter.tensor));
}

DType PartitionedParameter::wire_dtype() const {
  return context_.config.torch_autocast.enabled ? parameter_.communication_dtype : slice_.dtype();
}

std::int64_t PartitionedParameter::elements_of(int rank) const {
  return std::clamp<std::int64_t>(elements() - slice_elements_ * rank, 0, slice_elements_);
}

void PartitionedParameter::add_use(const ParameterUse& use) {
  if (std::find(uses_.begin(), uses_.end(), use) == uses_.end()) uses_.push_back(use);
}

void PartitionedParameter::remove_use(const ParameterUse& use) {
  std::erase(uses_, use);
}

std::int32_t PartitionedParameter::count_using_modules() const {
  std::set<std::int32_t> modules;
  for (const ParameterUse& use : uses_) modules.insert(use.module);
  return static_cast<std::int32_t>(modules.size());
}

void PartitionedParameter::begin_gather() {
  ZP_CHECK(is_partitioned(), "a gather starts from a partitioned parameter");
  if (is_cached_) evict_cached();
  status_ = ZeroParamStatus::inflight;
}

void PartitionedParameter::give_up_gather() {
  if (status_ == ZeroParamStatus::inflight) status_ = ZeroParamStatus::not_available;
}

void PartitionedParameter::install(const Tensor& full) {
  ZP_CHECK(status_ == ZeroParamStatus::inflight, "a gather that ends was under way");
  set_data(full.as_strided(parameter_.sizes, contiguous_strides(parameter_.sizes), 0));
  status_ = ZeroParamStatus::available;
}

void PartitionedParameter::watch_values(bool is_watched) {
  is_watched_ = is_watched;
  watched_values_.clear();
  note_gathered();
}

void PartitionedParameter::note_gathered() {
  if (is_watched_) watched_values_ = parameter_.tensor.values();
}

void PartitionedParameter::partition(bool has_been_updated) {
  check_unused();
  if (has_been_updated) take_slice(Span::of(parameter_.tensor));
  empty();
  status_ = ZeroParamStatus::not_available;
}

void PartitionedParameter::cache_whole() {
  check_unused();
  is_cached_ = true;
  status_ = ZeroParamStatus::not_available;
}

void PartitionedParameter::restore_cached() {
  ZP_CHECK(is_cached_, "what is reclaimed was kept");
  is_cached_ = false;
  status_ = ZeroParamStatus::available;
}

void PartitionedParameter::evict_cached() {
  ZP_CHECK(is_cached_, "what is dropped was kept");
  is_cached_ = false;
  empty();
}

void PartitionedParameter::check_unused() const {
  ZP_CHECK(is_available(), "only a whole parameter is partitioned");
  if (is_used())
    throw EngineError(
        EngineErrorId::parameter_freed_while_used,
        "cannot free parameter " + parameter_.name + ": a module that uses it is still under way");
}

void PartitionedParameter::empty() {
  context_.compute().record_use(parameter_.tensor);
  set_data(context_.runtime.memory().allocate(0, parameter_.tensor.dtype()));
}

void PartitionedParameter::take_slice(Span full) {
  if (own_elements_ == 0) return;
  context_.kernels().copy(context_.compute(), Span::of(slice_, 0, own_elements_),
                          full.part(own_begin_, own_elements_));
}

void PartitionedParameter::move_slice(const Tensor& place) {
  context_.kernels().copy(context_.compute(), Span::of(place), Span::of(slice_));
  slice_ = place;
}

// As `.data =` in PyTorch, where the version belongs to the tensor and not to its storage: what a
// node saved stays what it was, through any number of releases.
void PartitionedParameter::set_data(const Tensor& data) const {
  data.impl().storage->version = parameter_.tensor.impl().storage->version;
  parameter_.tensor.set_data(data);
}

std::vector<ContentPart> contents_of(const ZeroContext& context, const ParameterList& parameters) {
  return context.data.contents_of(parameters, [](const PartitionedParameter* parameter) {
    return ContentPart{parameter->id().value, 0};
  });
}

std::int64_t slices_of(const ParameterList& parameters) {
  std::int64_t elements = 0;
  for (const PartitionedParameter* parameter : parameters) elements += parameter->slice_elements();
  return elements;
}

}  // namespace zeroproof
