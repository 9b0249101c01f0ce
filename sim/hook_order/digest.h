#pragma once

#include <vector>

#include "engine/zero/state_visitor.h"
#include "sim/hook_order/device.h"

namespace zeroproof::hook_order {

// The state of one rank, as the engine gives it: words in a row, hashed at once. What queued work
// will replace does not count: it is that work that counts.
class Digest final : public StateVisitor {
 public:
  // `device` must outlive it.
  explicit Digest(const Device& device) : device_(device), words_(kFirstWords) {}

  // begin(), the rank's words, end().
  void begin();
  void number(std::uint64_t value) override {
    if (size_ == words_.size()) words_.resize(2 * size_);
    words_[size_++] = value;
  }
  void values(Span live) override;
  Fingerprint end() const;

 private:
  static constexpr std::size_t kFirstWords = 256;

  void forget_replaced(const double* first, std::int64_t count, std::uint64_t* words) const;

  const Device& device_;
  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;  // words added
};

}  // namespace zeroproof::hook_order
