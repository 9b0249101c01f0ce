#include "props/reference/rank_fibers.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "model/check.h"
#include "sim/world/fiber.h"

namespace zeroproof::reference {

const std::vector<Contribution>& Meetings::meet(int rank, Contribution brought) {
  const std::size_t number = arrived_[static_cast<std::size_t>(rank)]++;
  if (meetings_.size() <= number) {
    meetings_.push_back(std::make_unique<Meeting>());
    meetings_.back()->brought.resize(arrived_.size());
  }
  Meeting& meeting = *meetings_[number];
  meeting.brought[static_cast<std::size_t>(rank)] = std::move(brought);
  ++meeting.ranks;
  while (meeting.ranks < arrived_.size()) suspend_(rank);
  return meeting.brought;
}

void run_ranks(int ranks, const std::function<void(int rank, Meetings& meetings)>& program) {
  Meetings meetings(ranks);
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::unique_ptr<sim::Fiber>> fibers;
  meetings.suspend_ = [&](int rank) { fibers[static_cast<std::size_t>(rank)]->suspend(); };
  for (int rank = 0; rank < ranks; ++rank)
    fibers.push_back(std::make_unique<sim::Fiber>([&, rank] {
      try {
        program(rank, meetings);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    }));
  const auto is_done = [](const auto& fiber) { return fiber->is_done(); };
  const auto has_failed = [](const std::exception_ptr& error) { return error != nullptr; };
  for (std::size_t idle = 0; !std::ranges::all_of(fibers, is_done); ++idle) {
    // A rank that waits for a failed or ended rank waits forever.
    const bool is_stuck = idle > count && std::ranges::any_of(errors, has_failed);
    ZP_CHECK(!is_stuck && idle < 1'000'000, "the ranks of the reference meet");
    for (const auto& fiber : fibers)
      if (!fiber->is_done()) fiber->resume();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace zeroproof::reference
