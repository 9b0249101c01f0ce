#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace zeroproof::cuda {

// Where the ranks of one process tell each other where their memory is, once a collective and all
// in the same order. Thread-safe.
class AddressBoard {
 public:
  using Addresses = std::vector<const void*>;

  explicit AddressBoard(int ranks) : told_(static_cast<std::size_t>(ranks)) {}

  // By rank, when all have told theirs; until then `while_waiting` is told now and then how many
  // milliseconds it has been, and may throw. `call` says what they are for: RuntimeFault on every
  // rank where two differ.
  std::vector<Addresses> exchange(int rank, const std::string& call, Addresses mine,
                                  const std::function<void(std::int64_t)>& while_waiting);

 private:
  struct Round {
    std::vector<Addresses> of;       // by rank
    std::vector<std::string> calls;  // by rank
    std::size_t told = 0;
    std::size_t taken = 0;
  };

  Round& round(std::size_t number) { return rounds_[number - first_]; }
  bool is_complete(std::size_t number);

  std::mutex mutex_;
  std::vector<std::size_t> told_;  // how often, by rank
  std::deque<Round> rounds_;       // that somebody has still to take, from number first_ on
  std::size_t first_ = 0;
};

// Lets kernels and copies of each of these GPUs reach the stream-ordered memory of the others;
// false where the machine cannot.
bool share_memory(const std::vector<int>& ordinals);

}  // namespace zeroproof::cuda
