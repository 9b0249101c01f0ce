#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine_core.h"
#include "model/open_graph_task.h"
#include "sim/hook_order/device.h"
#include "sim/hook_order/digest.h"

namespace zeroproof::hook_order {

// One rank: a real engine over N parameters, whose hooks and graph tasks are called by hand.
class Rank {
 public:
  // `device` must outlive it, and is quiet meanwhile.
  Rank(const Settings& settings, std::uint32_t number, Device& device);

  // The hooks that this rank has to fire in a pass, a bit each.
  std::uint64_t all_hooks() const { return all_; }
  std::uint64_t open_hooks() const { return all_ & ~fired_; }
  std::size_t open_hooks_count() const { return open_count_; }
  std::uint32_t pass() const { return pass_; }
  bool is_done() const { return is_done_; }
  // Whether an epilogue ran in this pass already.
  bool has_epilogue() const { return core_.counters().backwards != backwards_; }

  void begin();                // the first pass
  void fire(std::uint32_t p);  // what the engine throws passes
  // The graph task ends, and the next begins unless this is the last pass. How many epilogues ran.
  std::int64_t end_pass();
  void split_task();  // ends and begins it, in the middle of a pass
  void fail();        // the engine threw: the task is given up, and no event follows

  // Back to where begin() can be called: gives up what is open, and forgets the window.
  void reset();

  // What the window of this rank has to hold after `passes` passes, and whether it does.
  bool is_window_right(std::uint32_t passes) const;

  Fingerprint digest();  // of all that the rank is and has queued
  bool has_gradient_left() const;

 private:
  void open_all_hooks();
  double contribution(std::uint32_t rank, std::uint32_t cell) const;
  void give_gradient(std::uint32_t p);
  void write_contributions(const Tensor& gradient, std::uint32_t p) const;

  const Settings& settings_;
  std::uint32_t number_;
  Device& device_;
  Digest digest_;
  CpuOps ops_;
  Autograd autograd_{ops_};
  std::unique_ptr<nn::Module> module_;
  Engine::Core core_;
  OpenGraphTask task_{autograd_};
  std::vector<TensorList> gradients_;  // by pass and parameter
  std::vector<GradientSlice> window_;
  std::uint64_t all_ = 0;
  std::uint64_t fired_ = 0;
  std::size_t open_count_ = 0;
  std::uint32_t pass_ = 0;
  std::int64_t backwards_ = 0;  // epilogues before this pass
  bool is_done_ = false;
  bool has_passed_ = false;  // an epilogue since the last reset
};

}  // namespace zeroproof::hook_order
