#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/zero/stage3/zero3_module.h"

namespace zeroproof {

enum class TraceMode : std::uint8_t { invalid, record, complete };

// In which order modules run, forward and backward, and hence in which order parameters are
// needed (docs/spec/zero.md 3.5): recorded from one root forward to the next, then followed. Knows
// no gathers.
class FetchTrace {
 public:
  // A use of a parameter, and the step at which its module is fetched.
  struct Entry {
    PartitionedParameter* parameter;
    std::int64_t step;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  explicit FetchTrace(std::size_t parameters) : fetched_for_(parameters, kNever) {}

  TraceMode mode() const { return mode_; }
  bool is_complete() const { return mode_ == TraceMode::complete; }
  std::int64_t step() const { return step_; }

  // The root's forward begins: INVALID -> RECORD -> COMPLETE.
  void restart();
  // Makes the order of parameters out of that of modules; before the restart that completes it.
  void construct_order();

  // Whether the module that runs now is the one that the order has here; true unless complete.
  bool expects(const Zero3Module& module) const;
  // fetch_bookkeeping_out_of_order unless recording.
  void record(Zero3Module& module);
  // Forgets all; fetch_bookkeeping_out_of_order when there is no trace to forget. The next restart
  // records again.
  void invalidate();
  void advance() { ++step_; }

  // The queue of the running step. `take_for` removes what the module needs and was not taken
  // ahead; fetch_order_changed when something else comes.
  void take_for(const ParameterList& needed);
  bool is_queue_empty() const { return queue_.empty(); }
  PartitionedParameter& take_next();
  // Whether the use after `step` was taken from the queue already.
  bool is_fetched_beyond(const PartitionedParameter& parameter, std::int64_t step) const {
    return fetched_for(parameter) > step;
  }

  const std::vector<Zero3Module*>& modules() const { return modules_; }
  const std::vector<Entry>& order() const { return order_; }

 private:
  static constexpr std::int64_t kNever = -10'000'000'000;

  std::int64_t& fetched_for(const PartitionedParameter& parameter) {
    return fetched_for_[static_cast<std::size_t>(parameter.id().value)];
  }
  std::int64_t fetched_for(const PartitionedParameter& parameter) const {
    return fetched_for_[static_cast<std::size_t>(parameter.id().value)];
  }

  TraceMode mode_ = TraceMode::invalid;
  std::int64_t step_ = 0;
  std::vector<Zero3Module*> modules_;
  std::vector<Entry> order_;
  std::deque<Entry> queue_;
  std::vector<std::int64_t> fetched_for_;  // by ParamId: the last step whose use was taken
};

}  // namespace zeroproof
