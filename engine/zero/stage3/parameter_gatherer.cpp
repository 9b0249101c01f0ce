#include "engine/zero/stage3/parameter_gatherer.h"

#include <algorithm>

#include "model/check.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof {
namespace {

constexpr std::size_t kOutstandingGathersMax = 2;

// Parameters without elements are whole at once, and take part in no collective (P51).
void install_empty(const ParameterList& parameters, Memory& memory) {
  for (PartitionedParameter* parameter : parameters) {
    if (parameter->elements() > 0 || !parameter->is_partitioned()) continue;
    parameter->begin_gather();
    parameter->install(memory.allocate(0, parameter->slice().dtype()));
  }
}

ParameterList partitioned(const ParameterList& parameters) {
  ParameterList found;
  for (PartitionedParameter* parameter : parameters)
    if (parameter->is_partitioned()) found.push_back(parameter);
  std::ranges::sort(found, {}, [](const PartitionedParameter* p) { return p->id(); });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// One list a wire dtype, in the order in which the dtypes come first.
std::vector<ParameterList> by_wire_dtype(const ParameterList& parameters) {
  std::vector<ParameterList> lists;
  for (PartitionedParameter* parameter : parameters) {
    const auto has_dtype = [&](const ParameterList& list) {
      return list.front()->wire_dtype() == parameter->wire_dtype();
    };
    const auto at = std::ranges::find_if(lists, has_dtype);
    if (at == lists.end()) {
      lists.push_back({parameter});
    } else {
      at->push_back(parameter);
    }
  }
  return lists;
}

}  // namespace

ParameterGatherer::ParameterGatherer(ZeroContext& context) : context_(context) {
  for (ZeroParameter& parameter : context.parameters) {
    PartitionedParameter& added = parameters_.emplace_back(context, parameter);
    by_tensor_[&parameter.tensor.impl()] = &added;
    added.partition(false);
  }
}

// What fails on the way leaves no gather in flight; what is queued keeps its memory, and is waited
// for where the parameters that came before are used.
template <class Act>
void ParameterGatherer::abort_gather_on_throw(const Gather& gather, Act act) {
  try {
    act();
  } catch (...) {
    for (PartitionedParameter* parameter : gather.parameters) give_up(*parameter);
    if (gather.flat.is_defined()) stream().record_use(gather.flat);
    for (const Tensor& whole : gather.whole) stream().record_use(whole);
    context_.compute().wait(stream());
    throw;
  }
}

// Gathers after one that fails do not begin any more.
template <class Act>
void ParameterGatherer::for_each_list(const ParameterList& missing, Act act) {
  const std::vector<ParameterList> lists = split(missing);
  std::size_t begun = 0;
  try {
    while (begun < lists.size()) act(lists[begun++]);
  } catch (...) {
    for (; begun < lists.size(); ++begun)
      for (const PartitionedParameter* parameter : lists[begun]) tell_abandoned(*parameter);
    throw;
  }
}

void ParameterGatherer::give_up(PartitionedParameter& parameter) {
  if (parameter.status() != ZeroParamStatus::inflight) return;
  parameter.give_up_gather();
  tell_abandoned(parameter);
}

// No fault point: something has failed already.
void ParameterGatherer::tell_abandoned(const PartitionedParameter& parameter) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = EventKind::mark;
  event.name = context_.events.name("gather_abandoned");
  event.param = parameter.parameter().name_id;
  context_.events.write_only(std::move(event));
}

PartitionedParameter* ParameterGatherer::find(const Tensor& tensor) {
  if (!tensor.is_defined()) return nullptr;
  const auto at = by_tensor_.find(&tensor.impl());
  return at == by_tensor_.end() ? nullptr : at->second;
}

void ParameterGatherer::gather_async(const ParameterList& parameters, bool is_forward) {
  install_empty(parameters, context_.runtime.memory());
  ParameterList missing = partitioned(parameters);
  if (missing.empty()) return;
  report(EventKind::zparam_gather_begin, missing, is_forward);
  for_each_list(missing, [this](const ParameterList& list) {
    const std::shared_ptr<Gather> gather = start(list, true);
    for (const PartitionedParameter* parameter : list)
      if (!inflight_.emplace(parameter->id(), gather).second)
        throw EngineError(EngineErrorId::fetch_bookkeeping_out_of_order,
                          parameter->parameter().name + " is in the registry of gathers already");
  });
}

// All of them, or none: what was whole before stays so.
void ParameterGatherer::gather(const ParameterList& parameters) {
  ParameterList absent = parameters;
  std::erase_if(absent, [](const auto* it) { return it->is_available() || it->elements() == 0; });
  try {
    gather_absent(parameters);
  } catch (...) {
    for (PartitionedParameter* parameter : absent)
      if (parameter->is_available() && !parameter->is_used()) partition(*parameter);
    throw;
  }
}

void ParameterGatherer::gather_absent(const ParameterList& parameters) {
  for (PartitionedParameter* parameter : parameters) wait(*parameter);
  install_empty(parameters, context_.runtime.memory());
  const ParameterList missing = partitioned(parameters);
  if (missing.empty()) return;
  report(EventKind::zparam_gather_begin, missing, false);
  for_each_list(missing, [this](const ParameterList& list) { finish(*start(list, false)); });
}

// One list a collective.
std::vector<ParameterList> ParameterGatherer::split(const ParameterList& parameters) const {
  return by_wire_dtype(parameters);
}

std::shared_ptr<ParameterGatherer::Gather> ParameterGatherer::start(ParameterList parameters,
                                                                    bool is_async) {
  auto gather = std::make_shared<Gather>();
  gather->is_async = is_async;
  gather->parameters = std::move(parameters);
  for (PartitionedParameter* parameter : gather->parameters) parameter->begin_gather();
  // Upstream's direct gathers have no such shortcut.
  if (context_.data.size() == 1 && is_async) return gather;
  abort_gather_on_throw(*gather, [&] { issue(*gather); });
  return gather;
}

// The slices lie in a row in the part of this rank; the all-gather is in place.
void ParameterGatherer::issue(Gather& gather) {
  const int ranks = context_.data.size();
  std::int64_t slices = 0;
  for (const PartitionedParameter* parameter : gather.parameters)
    slices += parameter->slice_elements();
  gather.flat =
      context_.runtime.memory().allocate(slices * ranks, gather.parameters.front()->wire_dtype());
  const Span all = Span::of(gather.flat);
  const Span own = all.part(slices * context_.data.group().rank(), slices);
  stream().wait(context_.compute());  // slices of an update just queued
  Stream& copying = stream();
  std::int64_t offset = 0;
  for (const PartitionedParameter* parameter : gather.parameters) {
    context_.kernels().copy(copying, own.part(offset, parameter->slice_elements()),
                            Span::of(parameter->slice()));
    offset += parameter->slice_elements();
  }
  gather.work = context_.data.all_gather(
      stream(), all, own,
      {.is_async = gather.is_async, .contents = contents_of(context_, gather.parameters)});
  context_.data.group().wait(gather.work, stream());
  try {
    assemble(gather);
  } catch (...) {  // it has travelled: no other call will wait for it
    if (gather.is_async) context_.data.wait(gather.work, stream());
    throw;
  }
}

void ParameterGatherer::wait(PartitionedParameter& parameter) {
  const auto at = inflight_.find(parameter.id());
  if (at == inflight_.end()) return;
  const std::shared_ptr<Gather> gather = at->second;
  limit_outstanding();
  finish(*gather);
  finished_.push_back(gather->ready);
}

void ParameterGatherer::wait_all() {
  while (!inflight_.empty()) wait(*inflight_.begin()->second->parameters.front());
}

// A gather that has not travelled is not missed where there is no room.
void ParameterGatherer::wait_all_or_drop_unissued() {
  while (!inflight_.empty()) {
    const std::shared_ptr<Gather> gather = inflight_.begin()->second;
    try {
      wait(*gather->parameters.front());
    } catch (const RuntimeFault&) {
      if (gather->work.sequence >= 0) throw;
    }
  }
}

void ParameterGatherer::outlive_inflight() noexcept {
  if (inflight_.empty()) return;
  try {
    context_.compute().wait(stream());
  } catch (...) {  // a device or a run that has failed reads no memory any more
  }
}

// The host waits for the last gather but two, as in GradientReducer (docs/spec/zero.md 3.3).
void ParameterGatherer::limit_outstanding() {
  if (finished_.size() <= kOutstandingGathersMax) return;
  stream().synchronize(finished_.front());
  finished_.pop_front();
}

void ParameterGatherer::finish(Gather& gather) {
  // All at once: what fails on the way must not leave a part of them in flight forever.
  for (const PartitionedParameter* parameter : gather.parameters) inflight_.erase(parameter->id());
  abort_gather_on_throw(gather, [&] { install(gather); });
  report(EventKind::zparam_gather_end, gather.parameters, false);
}

// Whole values, on the gathers' stream: right after their own all-gather, so that who waits
// for them does not wait for what was gathered ahead since.
void ParameterGatherer::assemble(Gather& gather) {
  std::int64_t offset = 0;
  for (const PartitionedParameter* parameter : gather.parameters) {
    gather.whole.push_back(assemble(gather, *parameter, offset));
    offset += parameter->slice_elements();
  }
  if (gather.flat.is_defined()) stream().record_use(gather.flat);
  gather.ready = stream().record();
}

void ParameterGatherer::install(Gather& gather) {
  const bool has_travelled = gather.work.sequence >= 0;
  if (!has_travelled) assemble(gather);
  if (has_travelled && gather.is_async) context_.data.wait(gather.work, stream());
  for (std::size_t i = 0; i < gather.parameters.size(); ++i)
    gather.parameters[i]->install(gather.whole[i]);
  context_.compute().wait(gather.ready);
  for (PartitionedParameter* parameter : gather.parameters) parameter->note_gathered();
}

// A parameter that travelled alone, in its own dtype, already lies as it must.
Tensor ParameterGatherer::assemble(const Gather& gather, const PartitionedParameter& parameter,
                                   std::int64_t offset) const {
  const DType dtype = parameter.slice().dtype();
  const bool is_alone = gather.flat.is_defined() && gather.parameters.size() == 1;
  if (is_alone && gather.flat.dtype() == dtype) return gather.flat;
  Tensor full = context_.runtime.memory().allocate(parameter.elements(), dtype);
  if (!gather.flat.is_defined()) {
    stream().wait(context_.compute());
    // What would have travelled is rounded to the wire dtype and back.
    Span source = Span::of(parameter.slice(), 0, parameter.elements());
    Tensor wire;
    if (parameter.wire_dtype() != dtype) {
      wire = context_.runtime.memory().allocate(parameter.elements(), parameter.wire_dtype());
      context_.kernels().copy(stream(), Span::of(wire), source);
      source = Span::of(wire);
    }
    context_.kernels().copy(stream(), Span::of(full), source);
    if (wire.is_defined()) stream().record_use(wire);
    return full;
  }
  const int ranks = context_.data.size();
  const std::int64_t slices = gather.flat.numel() / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t elements = parameter.elements_of(rank);
    if (elements == 0) break;
    context_.kernels().copy(stream(), Span::of(full, parameter.slice_elements() * rank, elements),
                            Span::of(gather.flat, slices * rank + offset, elements));
  }
  return full;
}

void ParameterGatherer::partition(PartitionedParameter& parameter, bool has_been_updated) {
  ZP_CHECK(!is_inflight(parameter), "a parameter in flight is not partitioned");
  parameter.partition(has_been_updated);
  tell_partition(parameter);
}

void ParameterGatherer::cache_whole(PartitionedParameter& parameter) {
  ZP_CHECK(!is_inflight(parameter), "a parameter in flight is not partitioned");
  parameter.cache_whole();
  tell_partition(parameter);
}

// A gather of no elements is not reported either.
void ParameterGatherer::tell_partition(PartitionedParameter& parameter) const {
  if (parameter.elements() > 0) report(EventKind::zparam_partition, {&parameter}, false);
}

void ParameterGatherer::restore_cached(const ParameterList& parameters) {
  if (parameters.empty()) return;
  report(EventKind::zparam_gather_begin, parameters, false);
  for (PartitionedParameter* parameter : parameters) parameter->restore_cached();
  report(EventKind::zparam_gather_end, parameters, false);
}

std::int64_t ParameterGatherer::available_elements() const {
  std::int64_t elements = 0;
  for (const PartitionedParameter& parameter : parameters_)
    if (parameter.is_available()) elements += parameter.elements();
  return elements;
}

std::int64_t ParameterGatherer::live_elements() const {
  std::int64_t elements = 0;
  for (const PartitionedParameter& parameter : parameters_)
    if (!parameter.is_partitioned()) elements += parameter.elements();
  return elements;
}

void ParameterGatherer::report(EventKind kind, const ParameterList& parameters,
                               bool is_forward) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = kind;
  event.is_forward = is_forward;
  for (const PartitionedParameter* parameter : parameters)
    event.params.push_back(parameter->parameter().name_id);
  if (kind != EventKind::zparam_gather_begin) event.numel = available_elements();
  context_.events.send(std::move(event));
}

}  // namespace zeroproof
