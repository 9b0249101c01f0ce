#include "engine/runtime/host/thread_rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace zeroproof::host {

ThreadRendezvous::ThreadRendezvous(Options options)
    : options_(std::move(options)),
      parts_(static_cast<std::size_t>(options_.size), nullptr),
      has_left_(parts_.size(), false) {}

void ThreadRendezvous::meet(int rank, std::int64_t sequence, const Collective& collective) {
  Lock lock(mutex_);
  // A rank may be a collective ahead of one that is still on its way out of the last.
  changed_.wait(lock, [&] { return to_leave_ == 0 || failure_; });
  raise();
  parts_[static_cast<std::size_t>(rank)] = &collective;
  if (++arrived_ == options_.size)
    start(sequence);
  else
    wait_for_others(lock, sequence);
  raise();
  finish_one();
}

void ThreadRendezvous::start(std::int64_t sequence) {
  fail_if_mismatched(sequence);
  raise();
  run_collective(parts_, scratch_, options_.has_garbage);
  std::ranges::fill(parts_, nullptr);
  arrived_ = 0;
  to_leave_ = options_.size;
  done_ = sequence;
  changed_.notify_all();
}

void ThreadRendezvous::wait_for_others(Lock& lock, std::int64_t sequence) {
  fail_if_deserted(sequence);
  const auto is_over = [&] { return done_ >= sequence || failure_; };
  if (changed_.wait_for(lock, options_.timeout, is_over)) return;
  const auto here = std::ranges::find_if(parts_, [](auto* part) { return part != nullptr; });
  fail({fmt::format("{}: timed out after {} ms waiting for {}",
                    title(sequence, static_cast<std::size_t>(here - parts_.begin())),
                    options_.timeout.count(), missing_ranks())});
}

void ThreadRendezvous::finish_one() {
  if (--to_leave_ == 0) changed_.notify_all();
}

void ThreadRendezvous::leave(int rank) {
  const Lock lock(mutex_);
  has_left_[static_cast<std::size_t>(rank)] = true;
  if (arrived_ > 0 && !failure_) fail_if_deserted(done_ + 1);
}

void ThreadRendezvous::return_to(int rank) {
  const Lock lock(mutex_);
  has_left_[static_cast<std::size_t>(rank)] = false;
}

void ThreadRendezvous::abort(const std::string& reason) {
  const Lock lock(mutex_);
  fail({reason, true});
}

std::optional<std::string> ThreadRendezvous::failure() {
  const Lock lock(mutex_);
  return failure_ ? std::optional(failure_->text) : std::nullopt;
}

void ThreadRendezvous::throw_if_failed() {
  const Lock lock(mutex_);
  raise();
}

void ThreadRendezvous::fail(Failure failure) {
  if (!failure_) failure_ = std::move(failure);
  changed_.notify_all();
}

void ThreadRendezvous::raise() const {
  if (!failure_) return;
  if (failure_->is_abort) throw GroupAborted(failure_->text);
  throw RuntimeFault(failure_->text);
}

void ThreadRendezvous::fail_if_mismatched(std::int64_t sequence) {
  for (std::size_t r = 1; r < parts_.size(); ++r) {
    if (is_same_kind(*parts_[0], *parts_[r])) continue;
    return fail({fmt::format("{}, but rank {} of the group issued {}", title(sequence, 0), r,
                             description(*parts_[r]))});
  }
}

void ThreadRendezvous::fail_if_deserted(std::int64_t sequence) {
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    if (!has_left_[r] || parts_[r]) continue;
    const auto here = std::ranges::find_if(parts_, [](auto* part) { return part != nullptr; });
    return fail({fmt::format("{}, but rank {} of the group ended without it",
                             title(sequence, static_cast<std::size_t>(here - parts_.begin())), r)});
  }
}

std::string ThreadRendezvous::title(std::int64_t sequence, std::size_t rank) const {
  return fmt::format("{}, collective {}: rank {} of the group issued {}", options_.name, sequence,
                     rank, description(*parts_[rank]));
}

std::string ThreadRendezvous::missing_ranks() const {
  std::vector<std::size_t> missing;
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (!parts_[r]) missing.push_back(r);
  return fmt::format("rank{} {} of the group", missing.size() == 1 ? "" : "s",
                     fmt::join(missing, ", "));
}

}  // namespace zeroproof::host
