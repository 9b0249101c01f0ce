#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "engine/zero/stage3/partitioned_parameter.h"

namespace zeroproof {

// All parameters of one engine in stage 3, and what brings them together and apart: coalesced
// all-gathers on their own stream, in the order of ids, one a wire dtype; and the registry of
// those in flight (docs/spec/zero.md 3.1). A group of one rank copies instead.
class ParameterGatherer {
 public:
  // Everything is partitioned; all ranks have equal values. `context` must outlive it.
  explicit ParameterGatherer(ZeroContext& context);

  std::deque<PartitionedParameter>& parameters() { return parameters_; }
  PartitionedParameter& of(const ZeroParameter& parameter) { return of(parameter.id); }
  PartitionedParameter& of(ParamId id) { return parameters_[static_cast<std::size_t>(id.value)]; }
  // Null for a tensor that is no parameter of this engine.
  PartitionedParameter* find(const Tensor& tensor);

  // Starts to gather those that are partitioned; the others are left alone.
  void gather_async(const ParameterList& parameters, bool is_forward);
  // Until it is whole; all that travelled with it are. No effect for one that is not in flight.
  void wait(PartitionedParameter& parameter);
  void wait_all();
  void wait_all_or_drop_unissued();  // the same where they are not used
  // At the end of the engine: memory of gathers in flight is freed after them.
  void outlive_inflight() noexcept;
  // Both at once, outside the fetches of modules; those in flight are waited for.
  void gather(const ParameterList& parameters);
  void partition(PartitionedParameter& parameter, bool has_been_updated = false);
  // A partition that leaves the values where they are, and a gather that finds them there: events
  // say the same of both, and no collective follows.
  void cache_whole(PartitionedParameter& parameter);
  void restore_cached(const ParameterList& parameters);

  bool is_inflight(const PartitionedParameter& parameter) const {
    return inflight_.contains(parameter.id());
  }
  // Elements of parameters that are whole; of those and of what is in flight.
  std::int64_t available_elements() const;
  std::int64_t live_elements() const;

 private:
  // One all-gather.
  struct Gather {
    ParameterList parameters;
    Tensor flat;  // rank-major: of every rank the slices of all parameters; undefined: one rank
    Work work;    // none: one rank
    TensorList whole = {};  // by parameter, after `ready` on the gathers' stream
    StreamEvent ready = {};
    bool is_async = true;
  };

  std::vector<ParameterList> split(const ParameterList& parameters) const;
  void gather_absent(const ParameterList& parameters);
  std::shared_ptr<Gather> start(ParameterList parameters, bool is_async);
  void issue(Gather& gather);
  void assemble(Gather& gather);
  void install(Gather& gather);
  void finish(Gather& gather);
  template <class Act>
  void for_each_list(const ParameterList& missing, Act act);
  void give_up(PartitionedParameter& parameter);
  void tell_partition(PartitionedParameter& parameter) const;
  void tell_abandoned(const PartitionedParameter& parameter) const;
  template <class Act>
  void abort_gather_on_throw(const Gather& gather, Act act);
  Tensor assemble(const Gather& gather, const PartitionedParameter& parameter,
                  std::int64_t offset) const;
  void limit_outstanding();
  void report(EventKind kind, const ParameterList& parameters, bool is_forward) const;
  Stream& stream() const { return context_.runtime.stream(StreamRole::all_gather); }

  ZeroContext& context_;
  std::deque<PartitionedParameter> parameters_;  // by ParamId
  std::map<const TensorImpl*, PartitionedParameter*> by_tensor_;
  std::map<ParamId, std::shared_ptr<Gather>> inflight_;
  std::deque<StreamEvent> finished_;  // gathers that the device may not have run yet
};

}  // namespace zeroproof
