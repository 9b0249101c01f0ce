#include "engine/runtime/kept_memory.h"

#include <algorithm>
#include <utility>

namespace zeroproof {
namespace {

constexpr std::size_t kGrain = 512;  // sizes that differ by less are one

std::size_t rounded(std::size_t bytes) {
  return (bytes + kGrain - 1) / kGrain * kGrain;
}

}  // namespace

void* KeptMemory::take(std::size_t bytes) {
  bytes = rounded(bytes);
  void* data = find(bytes);
  if (data == nullptr) {
    most_ = std::max(most_, used_ + bytes);
    while (kept_ > 0 && used_ + kept_ + bytes > most_) drop_oldest();
    data = pool_.take(bytes);
  }
  if (data == nullptr) {
    while (kept_ > 0) drop_oldest();
    data = pool_.take(bytes);
  }
  if (data != nullptr) used_ += bytes;
  return data;
}

// What waits for other queues is asked for the oldest, as that is over first.
void* KeptMemory::find(std::size_t bytes) {
  const auto shelf = shelves_.find(bytes);
  if (shelf == shelves_.end()) return nullptr;
  const auto is_over = [this](const Use& use) { return pool_.is_over(use); };
  auto& [ready, late] = shelf->second;
  void* data = nullptr;
  if (!ready.empty()) {
    data = ready.back().data;
    ready.pop_back();
  } else if (!late.empty() && std::ranges::all_of(late.front().pending_uses, is_over)) {
    data = late.front().data;
    late.pop_front();
  }
  if (data != nullptr) kept_ -= bytes;
  return data;
}

void KeptMemory::give_back(void* data, std::size_t bytes, Uses pending_uses) {
  bytes = rounded(bytes);
  used_ -= bytes;
  kept_ += bytes;
  Shelf& shelf = shelves_[bytes];
  Blocks& blocks = pending_uses.empty() ? shelf.ready : shelf.late;
  blocks.push_back({data, next_age_++, std::move(pending_uses)});
}

void KeptMemory::forget(std::size_t bytes) {
  used_ -= rounded(bytes);
}

void KeptMemory::clear() {
  while (kept_ > 0) drop_oldest();
  most_ = used_;
}

void KeptMemory::drop_oldest() {
  if (!drop_oldest(&Shelf::ready)) drop_oldest(&Shelf::late);
}

bool KeptMemory::drop_oldest(Blocks Shelf::*of) {
  auto oldest = shelves_.end();
  for (auto shelf = shelves_.begin(); shelf != shelves_.end(); ++shelf) {
    const Blocks& blocks = shelf->second.*of;
    const bool is_older =
        !blocks.empty() &&
        (oldest == shelves_.end() || blocks.front().age < (oldest->second.*of).front().age);
    if (is_older) oldest = shelf;
  }
  if (oldest == shelves_.end()) return false;
  Blocks& blocks = oldest->second.*of;
  const Block dropped = std::move(blocks.front());
  blocks.pop_front();
  kept_ -= oldest->first;
  pool_.give_back(dropped.data, dropped.pending_uses);
  return true;
}

}  // namespace zeroproof
