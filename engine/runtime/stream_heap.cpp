#include "engine/runtime/stream_heap.h"

#include <algorithm>
#include <iterator>

#include "model/check.h"

namespace zeroproof {

void StreamHeap::add(void* segment, std::size_t bytes) {
  release(blocks_.emplace(static_cast<std::byte*>(segment), Block{bytes, false, true}).first);
}

// The smallest that is large enough, so that large ones stay whole.
void* StreamHeap::take(std::size_t bytes, const Wait& wait) {
  bytes = aligned(bytes);
  auto found = free_.lower_bound({bytes, nullptr});
  while (found == free_.end() && !late_.empty()) {
    const Late oldest = std::move(late_.front());
    late_.pop_front();
    for (const StreamEvent event : oldest.pending_uses) wait(event);
    release(blocks_.find(static_cast<std::byte*>(oldest.data)));
    found = free_.lower_bound({bytes, nullptr});
  }
  if (found == free_.end()) return nullptr;
  const auto block = blocks_.find(found->second);
  free_.erase(found);
  block->second.is_free = false;
  if (block->second.bytes > bytes) {
    const auto rest =
        blocks_.emplace(block->first + bytes, Block{.bytes = block->second.bytes - bytes}).first;
    block->second.bytes = bytes;
    release(rest);
  }
  used_ += bytes;
  most_used_ = std::max(most_used_, used_);
  return block->first;
}

void StreamHeap::give_back(void* data, std::vector<StreamEvent> pending_uses) {
  const auto block = blocks_.find(static_cast<std::byte*>(data));
  ZP_CHECK(block != blocks_.end(), "memory given back to a heap that did not give it");
  used_ -= block->second.bytes;
  if (pending_uses.empty())
    release(block);
  else
    late_.push_back({data, std::move(pending_uses)});
}

// One with the free blocks beside it.
void StreamHeap::release(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next != blocks_.end() && next->second.is_free && !next->second.begins_segment) {
    free_.erase({next->second.bytes, next->first});
    block->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (!block->second.begins_segment && std::prev(block)->second.is_free) {
    const auto before = std::prev(block);
    free_.erase({before->second.bytes, before->first});
    before->second.bytes += block->second.bytes;
    blocks_.erase(block);
    block = before;
  }
  block->second.is_free = true;
  free_.insert({block->second.bytes, block->first});
}

}  // namespace zeroproof
