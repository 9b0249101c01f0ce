// All-gathers beside other work: of the update in stages 1 and 2, of the forward in stage 3.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/internal/engine/runtime/access.h"

namespace zeroproof {
namespace {

constexpr int kSteps = 4;

// The gradients of every step, one value behind the other: all but the first follow from what was
// gathered before.
std::vector<double> gradients_of(const ZeroConfig& config, HostWorld& world) {
  std::vector<double> values;
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    auto engine = Engine::initialize(autograd, model, config, runtime).value();
    for (int step = 0; step < kSteps; ++step) {
      engine->backward(engine->forward(filled({2, 4}, 0.01 * runtime.rank())));
      for (const FullTensor& gradient : engine->full_gradients())
        if (runtime.rank() == 0)
          values.insert(values.end(), gradient.values.begin(), gradient.values.end());
      engine->step();
    }
  });
  return values;
}

TEST(OverlappedGathers, Of_parts_of_an_update_give_the_bits_of_one_behind_it) {
  for (const int stage : {1, 2})
    for (const int world_size : {2, 3}) {
      ZeroConfig config{.stage = stage};
      HostWorld world({.world_size = world_size});
      const std::vector<double> behind = gradients_of(config, world);
      config.overlap_comm = true;
      for (const std::int64_t elements : {2, 6, 10, 1000}) {
        config.allgather_bucket_size = elements;
        EXPECT_EQ(gradients_of(config, world), behind)
            << stage << " " << world_size << " " << elements;
      }
    }
}

// How much of what was queued on the gathers' stream the computation waits for.
class GatherWaits final : public AccessObserver {
 public:
  bool has_run_ahead() const { return has_run_ahead_; }

  void on_access(const Access& access) override {
    if (access.stream == kGathers && access.is_write) ++writes_;
  }
  void on_record(StreamId stream, StreamEvent event) override {
    if (stream == kGathers) writes_before_[event] = writes_;
  }
  void on_wait(StreamId stream, StreamEvent event) override {
    const auto at = writes_before_.find(event);
    if (stream == kCompute && at != writes_before_.end() && at->second < writes_)
      has_run_ahead_ = true;
  }
  void on_host_wait(StreamEvent) override {}

 private:
  static constexpr StreamId kCompute{static_cast<std::int32_t>(StreamRole::compute)};
  static constexpr StreamId kGathers{static_cast<std::int32_t>(StreamRole::all_gather)};

  std::int64_t writes_ = 0;
  std::map<StreamEvent, std::int64_t> writes_before_;
  bool has_run_ahead_ = false;
};

TEST(OverlappedGathers, Of_parameters_ahead_hold_up_no_fetch) {
  GatherWaits waits;
  HostWorldOptions options{.world_size = 2};
  options.observers.resize(2);
  options.observers[0].accesses = &waits;
  HostWorld world(options);
  ZeroConfig config{.stage = 3};
  config.stage3_param_persistence_threshold = 0;
  config.stage3_prefetch_bucket_size = 4;
  config.stage3_max_reuse_distance = 0;
  gradients_of(config, world);
  EXPECT_TRUE(waits.has_run_ahead());
}

}  // namespace
}  // namespace zeroproof
