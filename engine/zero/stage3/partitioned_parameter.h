#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/zero/stage3/parameter_claims.h"
#include "engine/zero/zero_context.h"

namespace zeroproof {

enum class ZeroParamStatus : std::uint8_t { not_available, inflight, available };

// "NOT_AVAILABLE", as upstream has it. Static.
std::string_view zero_param_status_name(ZeroParamStatus status);

// Who needs a parameter whole: a module, in one direction of one of its calls. Upstream knows the
// module alone.
struct ParameterUse {
  std::int32_t module = -1;
  bool is_backward = false;
  std::int64_t invocation = 0;
  friend bool operator==(const ParameterUse&, const ParameterUse&) = default;
};

// A parameter of stage 3 (docs/spec/zero.md 3.1): every rank keeps a slice of ceil(n / ranks)
// elements, zeros after the end of the parameter; the whole values come and go under the
// identity of the leaf, with its dtype and version, so that its AccumulateGrad stays (rule A6).
// The ParameterGatherer moves it between its states. All references must outlive it.
class PartitionedParameter {
 public:
  // Starts available, with what the tensor holds; partition() follows.
  PartitionedParameter(ZeroContext& context, ZeroParameter& parameter);

  ZeroParameter& parameter() const { return parameter_; }
  ParamId id() const { return parameter_.id; }
  std::int64_t elements() const { return parameter_.elements; }
  // In this dtype it travels: with torch_autocast its communication dtype (docs/spec/zero.md 6.1).
  DType wire_dtype() const;

  ZeroParamStatus status() const { return status_; }
  bool is_available() const { return status_ == ZeroParamStatus::available; }
  bool is_partitioned() const { return status_ == ZeroParamStatus::not_available; }

  // Flat, of slice_elements(); own_elements() of them belong to the parameter, from own_begin() on.
  const Tensor& slice() const { return slice_; }
  std::int64_t slice_elements() const { return slice_elements_; }
  std::int64_t own_begin() const { return own_begin_; }
  std::int64_t own_elements() const { return own_elements_; }
  // What of the parameter lies in the slice of another rank.
  std::int64_t elements_of(int rank) const;

  void add_use(const ParameterUse& use);
  void remove_use(const ParameterUse& use);
  void clear_uses() { uses_.clear(); }
  bool is_used() const { return !uses_.empty(); }
  std::int32_t count_using_modules() const;

  bool is_persistent() const { return is_persistent_; }
  void set_persistent(bool is_persistent) { is_persistent_ = is_persistent; }
  // Returned by a module: no module hook releases it (docs/spec/zero.md 3.8).
  bool is_external() const { return is_external_; }
  void set_external(bool is_external) { is_external_ = is_external; }
  // Of a module that is fetched as one, with all below it (docs/spec/zero.md 3.7): experts, as a
  // rule.
  bool is_of_leaf_module() const { return is_of_leaf_module_; }
  void set_of_leaf_module(bool is_of_one) { is_of_leaf_module_ = is_of_one; }
  // How many gathered_parameters contexts have it.
  int user_depth() const { return user_depth_; }
  void set_user_depth(int depth) { user_depth_ = depth; }
  // Keeps what it holds, and from then on what each gather brings: a user's changes differ from it.
  void watch_values(bool is_watched);
  void note_gathered();  // the values of a gather are there
  const std::vector<double>& watched_values() const { return watched_values_; }
  // Who gathered it for eager code; null: no reader.
  ParameterClaims* owner() const { return owner_; }
  void set_owner(ParameterClaims* owner) { owner_ = owner; }

  // Partitioned, though its values are still there: a retained graph may need them again. Whether
  // it is changes memory alone, unless that graph reclaims them.
  bool is_kept() const { return is_cached_; }
  // available -> not_available, and back without a gather; or giving the memory back after all.
  void cache_whole();
  void restore_cached();
  void evict_cached();

  // The transitions of 3.1. `full` is flat, of at least elements(), in the parameter's dtype.
  void begin_gather();
  void give_up_gather();  // it failed: partitioned again, unless it is installed already
  void install(const Tensor& full);
  // parameter_freed_while_used while a module uses it. With `has_been_updated` the slice takes the
  // whole values over.
  void partition(bool has_been_updated);
  // The slice from whole values, whatever the status.
  void take_slice(Span full);
  // It lies there from now on: flat, of slice_elements(), on the device.
  void move_slice(const Tensor& place);

 private:
  void check_unused() const;
  void empty();
  void set_data(const Tensor& data) const;

  ZeroContext& context_;
  ZeroParameter& parameter_;
  ZeroParamStatus status_ = ZeroParamStatus::available;
  Tensor slice_;
  std::int64_t slice_elements_ = 0;
  std::int64_t own_begin_ = 0;
  std::int64_t own_elements_ = 0;
  std::vector<ParameterUse> uses_;
  bool is_cached_ = false;
  bool is_persistent_ = false;
  bool is_external_ = false;
  bool is_of_leaf_module_ = false;
  int user_depth_ = 0;
  bool is_watched_ = false;
  std::vector<double> watched_values_;
  ParameterClaims* owner_ = nullptr;
};

using ParameterList = std::vector<PartitionedParameter*>;

// Elements of one rank's slices of all of them.
std::int64_t slices_of(const ParameterList& parameters);

// What a collective over the data-parallel group moves: these, in this order.
std::vector<ContentPart> contents_of(const ZeroContext& context, const ParameterList& parameters);

inline bool contains(const ParameterList& list, const PartitionedParameter* parameter) {
  return std::find(list.begin(), list.end(), parameter) != list.end();
}

}  // namespace zeroproof
