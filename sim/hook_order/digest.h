#pragma once

#include <vector>

#include "engine/zero/state_visitor.h"
#include "sim/hook_order/device.h"

namespace zeroproof::hook_order {

// The state of one rank as a sum of facts: place and number of what the engine tells. Asked again,
// it changes by what is told differently: the rest is compared and not hashed. What queued work
// will replace says nothing: it is that work that counts.
class Digest final : public StateVisitor {
 public:
  // `device` must outlive it.
  explicit Digest(const Device& device)
      : device_(device),
        first_place_(std::uint64_t{3} << 60 | static_cast<std::uint64_t>(device.rank()) << 48) {}

  // begin(), what the rank tells, end(): equal when and only when the same is told.
  void begin() { at_ = 0; }
  void number(std::uint64_t value) override { tell(value); }
  void values(Span live) override;
  const Fingerprint& end();

 private:
  struct Told {
    std::uint64_t value = 0;
    bool is_fact = false;  // else nothing is known of this place
    Fingerprint fact;
  };

  void tell(std::uint64_t value) {
    if (at_ < told_.size() && told_[at_].is_fact && told_[at_].value == value) {
      ++at_;
      return;
    }
    replace({value, true, {}});
  }
  void tell_nothing() {
    if (at_ < told_.size() && !told_[at_].is_fact) {
      ++at_;
      return;
    }
    replace({});
  }
  void replace(Told told);
  void add_values(const double* first, std::int64_t count);

  const Device& device_;
  std::uint64_t first_place_;
  std::size_t at_ = 0;
  std::vector<Told> told_;  // by place
  Facts facts_;             // of all of them
};

}  // namespace zeroproof::hook_order
