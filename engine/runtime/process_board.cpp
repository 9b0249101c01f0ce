#include "engine/runtime/process_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "model/check.h"
#include "model/fnv1a.h"

namespace zeroproof {
namespace {

constexpr std::size_t kTextBytes = 240;  // of a call; longer ones differ by their hash
constexpr std::size_t kAddresses = 64;   // of a round; a call with more takes several
constexpr std::size_t kPlaces = 2;

}  // namespace

struct ProcessBoard::Entry {
  std::uint64_t hash;   // of the whole call
  std::uint64_t count;  // of all addresses
  std::uint64_t text_bytes;
  std::array<char, kTextBytes> text;
  std::array<SharedAddress, kAddresses> addresses;

  std::string call() const {
    std::string begin(text.data(), std::min(text_bytes, kTextBytes));
    if (text_bytes <= kTextBytes) return begin;
    return begin + "... (" + std::to_string(text_bytes) + " bytes, " + std::to_string(hash) + ")";
  }
};

// A rank writes its own alone.
struct ProcessBoard::Seat {
  alignas(64) std::uint64_t rounds;  // published
  alignas(64) std::array<Entry, kPlaces> places;
};

std::size_t ProcessBoard::bytes_of(int ranks) {
  return static_cast<std::size_t>(ranks) * sizeof(Seat);
}

ProcessBoard::ProcessBoard(std::shared_ptr<SharedRegion> region, int rank, int ranks)
    : region_(std::move(region)), rank_(rank), ranks_(ranks) {
  ZP_CHECK(region_->bytes() >= bytes_of(ranks), "a board in a region that is too small");
}

ProcessBoard::Seat& ProcessBoard::seat(int rank) const {
  return reinterpret_cast<Seat*>(region_->data())[rank];
}

// Of the last round.
ProcessBoard::Entry& ProcessBoard::entry(int rank) const {
  return seat(rank).places[rounds_ % kPlaces];
}

std::vector<ProcessBoard::Addresses> ProcessBoard::exchange(const std::string& call,
                                                            const Addresses& mine,
                                                            const WhileWaiting& while_waiting) {
  std::vector<Addresses> all(static_cast<std::size_t>(ranks_));
  std::vector<std::string> calls;
  std::size_t most = 0;  // the same on every rank, and with it the number of rounds
  for (std::size_t part = 0; part == 0 || part * kAddresses < most; ++part) {
    publish(call, mine, part);
    wait_for_all(while_waiting);
    for (int rank = 0; rank < ranks_; ++rank) {
      const Entry& of = entry(rank);
      if (part == 0) calls.push_back(of.call());
      most = std::max<std::size_t>(most, of.count);
      Addresses& to = all[static_cast<std::size_t>(rank)];
      const std::size_t rest = of.count - std::min<std::size_t>(of.count, part * kAddresses);
      to.insert(to.end(), of.addresses.begin(),
                of.addresses.begin() + static_cast<std::ptrdiff_t>(std::min(rest, kAddresses)));
    }
  }
  check_same_calls(calls);
  return all;
}

void ProcessBoard::publish(const std::string& call, const Addresses& mine, std::size_t part) {
  ++rounds_;
  Entry& own = entry(rank_);
  own.hash = fnv1a(call);
  own.count = mine.size();
  own.text_bytes = call.size();
  std::copy_n(call.begin(), std::min(call.size(), kTextBytes), own.text.begin());
  const std::size_t begin = std::min(mine.size(), part * kAddresses);
  std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(begin),
              std::min(mine.size() - begin, kAddresses), own.addresses.begin());
  std::atomic_ref(seat(rank_).rounds).store(rounds_, std::memory_order_release);
}

void ProcessBoard::wait_for_all(const WhileWaiting& while_waiting) const {
  const auto has_published = [this](int rank) {
    return std::atomic_ref(seat(rank).rounds).load(std::memory_order_acquire) >= rounds_;
  };
  int next = 0;
  wait_until(
      [&] {
        while (next < ranks_ && has_published(next)) ++next;
        return next == ranks_;
      },
      while_waiting);
}

}  // namespace zeroproof
