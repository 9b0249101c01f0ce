#include "engine/runtime/address_board.h"

#include <algorithm>
#include <utility>

namespace zeroproof {

AddressBoard::Round& AddressBoard::tell(int rank, const std::string& call, Addresses mine) {
  const auto place = static_cast<std::size_t>(rank);
  const std::lock_guard lock(mutex_);
  const std::size_t number = told_[place]++;
  while (rounds_.size() + first_ <= number) rounds_.emplace_back(told_.size());
  Round& round = rounds_[number - first_];
  round.of[place] = std::move(mine);
  round.calls[place] = call;
  ++round.told;
  return round;
}

std::vector<AddressBoard::Addresses> AddressBoard::exchange(int rank, const std::string& call,
                                                            Addresses mine,
                                                            const WhileWaiting& while_waiting) {
  Round& round = tell(rank, call, std::move(mine));
  wait_until([&] { return round.told == told_.size(); }, while_waiting);
  const std::lock_guard lock(mutex_);
  std::vector<Addresses> all = round.of;
  const std::vector<std::string> calls = round.calls;
  ++round.taken;
  while (!rounds_.empty() && rounds_.front().taken == told_.size()) {
    rounds_.pop_front();
    ++first_;
  }
  check_same_calls(calls);
  return all;
}

void AddressBoard::finish(int rank) {
  const std::lock_guard lock(mutex_);
  finished_[static_cast<std::size_t>(rank)] = told_[static_cast<std::size_t>(rank)];
}

void AddressBoard::wait_for_others(int rank, const WhileWaiting& while_waiting) {
  wait_until([&] { return have_others_finished(rank); }, while_waiting);
}

bool AddressBoard::have_others_finished(int rank) {
  const std::lock_guard lock(mutex_);
  const std::size_t own = finished_[static_cast<std::size_t>(rank)];
  return std::ranges::all_of(finished_, [own](std::size_t other) { return other >= own; });
}

}  // namespace zeroproof
