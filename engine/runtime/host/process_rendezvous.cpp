#include "engine/runtime/host/process_rendezvous.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "engine/runtime/host/peer_part.h"

namespace zeroproof::host {

ProcessRendezvous::ProcessRendezvous(std::shared_ptr<Job> job, std::string name,
                                     std::vector<int> ranks, bool has_garbage)
    : job_(std::move(job)),
      name_(std::move(name)),
      ranks_(std::move(ranks)),
      has_garbage_(has_garbage),
      number_(job_->next_number()) {}

void ProcessRendezvous::meet(int rank, std::int64_t sequence, const Collective& collective) {
  throw_if_failed();
  const auto mine = static_cast<std::size_t>(rank);
  const std::string what = title(sequence, collective);
  job_->set(key_of(sequence, mine), packed_part(collective));
  std::vector<std::optional<PeerPart>> parts(ranks_.size());
  std::vector<const Collective*> all(ranks_.size(), &collective);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (r == mine) continue;
    parts[r] = unpacked_part(job_->wait(key_of(sequence, r), ranks_[r], what),
                             static_cast<int>(ranks_.size()));
    if (!parts[r])
      fail(fmt::format("{}, and the part of rank {} of the group is damaged", what, r));
    all[r] = &parts[r]->collective;
  }
  for (std::size_t r = 1; r < all.size(); ++r)
    if (!is_same_kind(*all[0], *all[r]))
      fail(
          fmt::format("{}, collective {}: rank 0 of the group issued {}, but rank {} of the group "
                      "issued {}",
                      name_, sequence, description(*all[0]), r, description(*all[r])));
  run_collective(all, scratch_, has_garbage_);
  // Who has come to this one has read all of the one before.
  if (sequence > 0) job_->remove(key_of(sequence - 1, mine));
}

void ProcessRendezvous::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = reason;
  is_aborted_ = true;
}

std::optional<std::string> ProcessRendezvous::failure() {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return failure_;
  }
  return job_->failure();
}

void ProcessRendezvous::throw_if_failed() {
  const auto text = failure();
  if (!text) return;
  const std::lock_guard lock(mutex_);
  if (failure_.empty() || is_aborted_) throw GroupAborted(*text);
  throw RuntimeFault(*text);
}

std::string ProcessRendezvous::key_of(std::int64_t sequence, std::size_t rank) const {
  return fmt::format("collective/{}/{}/{}", number_, sequence, rank);
}

std::string ProcessRendezvous::title(std::int64_t sequence, const Collective& collective) const {
  return fmt::format("{}, collective {}: {}", name_, sequence, description(collective));
}

void ProcessRendezvous::fail(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = text;
  }
  throw RuntimeFault(text);
}

}  // namespace zeroproof::host
