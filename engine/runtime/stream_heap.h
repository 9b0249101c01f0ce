#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof {

// Parts of large segments of a device's memory, given in the order of one queue, the compute
// stream: what comes back is given again at once where that queue alone has used it. Free
// neighbours of one segment are joined. Used by one thread at a time.
class StreamHeap {
 public:
  using Wait = std::function<void(StreamEvent)>;
  static constexpr std::size_t kAlignment = 512;  // that of cudaMallocAsync
  // What a block of so many bytes takes.
  static constexpr std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  void add(void* segment, std::size_t bytes);
  // Null: no free block is large enough. Memory given back after work of other streams is given
  // again last, the oldest first: `wait` makes the compute stream wait for that.
  void* take(std::size_t bytes, const Wait& wait);
  // `pending_uses`: the uses by other streams than the compute stream.
  void give_back(void* data, std::vector<StreamEvent> pending_uses);

  // Not given back, at most since the reset.
  std::size_t most_used_bytes() const { return most_used_; }
  void reset_most_used() { most_used_ = used_; }

 private:
  struct Block {
    std::size_t bytes = 0;
    bool is_free = false;
    bool begins_segment = false;
  };
  using Blocks = std::map<std::byte*, Block>;  // neighbours in memory are neighbours here
  struct Late {
    void* data;
    std::vector<StreamEvent> pending_uses;
  };

  void release(Blocks::iterator block);

  Blocks blocks_;
  std::set<std::pair<std::size_t, std::byte*>> free_;  // by size
  std::deque<Late> late_;
  std::size_t used_ = 0;
  std::size_t most_used_ = 0;
};

}  // namespace zeroproof
