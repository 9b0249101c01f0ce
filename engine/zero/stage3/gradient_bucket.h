#pragma once

#include <cstdint>
#include <vector>

#include "engine/zero/stage3/partitioned_parameter.h"

namespace zeroproof {

// Parameters of one communication dtype whose gradients wait for their reduction, and the streams
// that made those (docs/spec/zero.md 2.16). Unlike an IpgBucket it has no buffer: gradients stay in
// .grad until the reducer lays them out by rank. Adding does not allocate and costs the same
// whatever the bucket holds.
class GradientBucket {
 public:
  // `context` must outlive it.
  GradientBucket(ZeroContext& context, DType communication_dtype);

  DType communication_dtype() const { return communication_dtype_; }
  bool is_empty() const { return parameters_.empty(); }
  std::int64_t elements() const { return elements_; }
  bool is_full_for(std::int64_t elements) const;
  bool holds(const ZeroParameter& parameter) const { return is_held_[place(parameter)] != 0; }
  // As they came.
  const ParameterList& parameters() const { return parameters_; }

  // `whole` and what of it lies here, on the stream that is current; twice is for the caller to
  // avoid. Does not look at `partitioned`: hooks have little time for memory that is far away.
  void add(const ZeroParameter& whole, PartitionedParameter& partitioned) {
    if (has_streams_) note_producer();
    parameters_.push_back(&partitioned);
    is_held_[place(whole)] = 1;
    elements_ += whole.elements;
  }
  // The short way in for a hook: false, without an effect, where that takes more: no room, a
  // parameter that is here already, several streams.
  bool try_append_fast(const ZeroParameter& whole, PartitionedParameter& partitioned) {
    const std::int64_t elements = elements_ + whole.elements;
    if (elements > direct_max_ || holds(whole)) return false;
    if (parameters_.size() == parameters_.capacity()) return false;
    parameters_.push_back(&partitioned);
    is_held_[place(whole)] = 1;
    elements_ = elements;
    return true;
  }
  // Before `reduction` reads: it waits for every stream that made a gradient; upstream: for the
  // current one alone (H19).
  void order_before(Stream& reduction) const;
  // Empties it; what it had, by id, until the next call.
  const ParameterList& take_all();
  void clear();

 private:
  static std::size_t place(const ZeroParameter& parameter) {
    return static_cast<std::size_t>(parameter.id.value);
  }

  void note_producer();

  ZeroContext& context_;
  DType communication_dtype_;
  std::int64_t elements_max_;
  bool has_streams_;         // else there is one, and no event to remember
  std::int64_t direct_max_;  // elements that take() may fill
  std::int64_t elements_ = 0;
  ParameterList parameters_;
  ParameterList taken_;
  std::vector<std::uint8_t> is_held_;   // by ParamId; bytes, which are quicker than bits
  std::vector<StreamIndex> producers_;  // each once
};

}  // namespace zeroproof
