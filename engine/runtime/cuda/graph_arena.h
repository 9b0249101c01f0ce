#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof::cuda {

// The memory of one CUDA graph, which each replay finds where the capture had it: segments of the
// GPU's pool, given back as a whole when the graph and the last tensor on it are gone. What comes
// back during the capture is given again, at once where the compute stream alone has used it, as
// that runs in the order of the capture. Used by the thread that captures, on the current device.
class GraphArena {
 public:
  GraphArena();
  ~GraphArena();
  GraphArena(const GraphArena&) = delete;
  GraphArena& operator=(const GraphArena&) = delete;

  // Memory given back after work of other streams is given again last, the oldest first: `wait`
  // makes the compute stream wait for that.
  void* take(std::size_t bytes, const std::function<void(StreamEvent)>& wait);
  // `pending_uses`: the uses by other streams than the compute stream.
  void give_back(void* data, std::vector<StreamEvent> pending_uses);

 private:
  struct Block {
    std::size_t bytes = 0;
    bool is_free = false;
    bool begins_segment = false;
  };
  using Blocks = std::map<std::byte*, Block>;  // neighbours in memory are neighbours here

  void add_segment(std::size_t bytes);
  void release(Blocks::iterator block);

  cudaStream_t queue_ = nullptr;  // is never captured
  Blocks blocks_;
  std::set<std::pair<std::size_t, std::byte*>> free_;  // by size
  struct Late {
    void* data;
    std::vector<StreamEvent> pending_uses;
  };
  std::deque<Late> late_;
  std::vector<void*> segments_;
};

}  // namespace zeroproof::cuda
