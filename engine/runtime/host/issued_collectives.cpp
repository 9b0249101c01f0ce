#include "engine/runtime/host/issued_collectives.h"

#include <algorithm>

#include "model/check.h"

namespace zeroproof::host {

std::int64_t IssuedCollectives::add(const Collective& collective) {
  const bool has_data = collective.op != CollectiveOp::barrier;
  const std::lock_guard lock(mutex_);
  kept_.push_back({.op = collective.op,
                   .dtype = has_data ? collective.input.dtype() : DType::float32,
                   .elements = collective.input.elements});
  return end() - 1;
}

void IssuedCollectives::complete(std::int64_t from, StreamEvent completion) {
  const std::lock_guard lock(mutex_);
  for (std::int64_t i = std::max(from, first_); i < end(); ++i)
    kept_[static_cast<std::size_t>(i - first_)].completion = completion;
}

void IssuedCollectives::forget(const IsOver& is_over) {
  const std::lock_guard lock(mutex_);
  while (!kept_.empty() && !kept_.front().completion.is_none() &&
         is_over(kept_.front().completion)) {
    kept_.pop_front();
    ++first_;
  }
}

std::int64_t IssuedCollectives::size() const {
  const std::lock_guard lock(mutex_);
  return end();
}

std::int64_t IssuedCollectives::kept() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(kept_.size());
}

std::optional<IssuedCollectives::Issued> IssuedCollectives::find(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  ZP_CHECK(number < end(), "a work that the group did not issue");
  if (number < first_) return std::nullopt;
  return kept_[static_cast<std::size_t>(number - first_)];
}

std::optional<std::pair<std::int64_t, IssuedCollectives::Issued>> IssuedCollectives::oldest()
    const {
  const std::lock_guard lock(mutex_);
  if (kept_.empty()) return std::nullopt;
  return std::pair(first_, kept_.front());
}

}  // namespace zeroproof::host
