#include "engine/runtime/address_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

// The others are about to come, as they queue the same work; so without giving the processor away.
template <class IsOver>
void wait_until(IsOver is_over, const AddressBoard::WhileWaiting& while_waiting) {
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t asked = 0;
  while (!is_over()) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    if (waited.count() > asked) while_waiting(waited.count());
    asked = waited.count();
    std::this_thread::yield();
  }
}

void check_same(const std::vector<std::string>& calls) {
  const auto other =
      std::ranges::find_if(calls, [&](const std::string& call) { return call != calls.front(); });
  if (other == calls.end()) return;
  throw RuntimeFault(
      fmt::format("ranks of a group issue different collectives: rank 0 {}, rank {} {}",
                  calls.front(), other - calls.begin(), *other));
}

}  // namespace

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
  check_same(calls);
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
