// A failed backward takes back what it added and leaves the rest: gradients that wait on its rank
// outlive it (docs/spec/zero.md 2.2, 2.5, 2.12).
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

struct ThrownByHook : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One rank's engine with its model, and whether the weight of `b` throws instead of a gradient.
struct SideScene {
  Engine& engine;
  const SidePathModel& model;
  bool& throws;
  const Tensor x = filled({2, 4}, 0.1);

  Tensor loss() const { return engine.forward(x); }
  Tensor past() const { return mean_square(engine.autograd(), (*model.b)(engine.autograd(), x)); }
  Tensor both() const {
    const Tensor inside = loss();
    return add(engine.autograd(), inside, past());
  }

  // Throws after the gradient of b's bias and before any output of the engine's forward.
  void fail(const std::function<void()>& backward) const {
    throws = true;
    EXPECT_THROW(backward(), ThrownByHook);
    throws = false;
  }
};

using SceneProgram = std::function<void(const SideScene& scene)>;

// Gradients of the window that the program leaves, rank by rank the same.
std::vector<std::vector<double>> window_of(const ZeroConfig& config, const SceneProgram& program) {
  std::vector<std::vector<double>> gradients;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    SidePathModel model;
    bool throws = false;
    auto engine = Engine::initialize(ag, model, config, runtime).value();
    model.b->weight.register_hook([&](const Tensor&) -> Tensor {
      if (throws) throw ThrownByHook("a hook of the user's");
      return {};
    });
    program({*engine, model, throws});
    const auto all = engine->full_gradients();
    if (runtime.rank() != 0) return;
    for (const FullTensor& gradient : all) gradients.push_back(gradient.values);
  });
  return gradients;
}

ZeroConfig side_config(int stage, bool has_overlap, bool is_contiguous = true) {
  ZeroConfig config{.stage = stage, .gradient_clipping = 0.0};
  config.overlap_comm = has_overlap;
  config.contiguous_gradients = is_contiguous;
  config.optimizer.type = OptimizerType::sgd;
  config.optimizer.sgd.lr = 0.0;
  return config;
}

// Whether a failed backward between the first and the second program changes anything.
void expect_untouched(const ZeroConfig& config, const SceneProgram& first,
                      const SceneProgram& failing, const SceneProgram& second) {
  const auto clean = window_of(config, [&](const SideScene& scene) {
    first(scene);
    second(scene);
  });
  const auto disturbed = window_of(config, [&](const SideScene& scene) {
    first(scene);
    failing(scene);
    second(scene);
  });
  ASSERT_EQ(clean.size(), 4U);
  EXPECT_GT(std::abs(clean.at(3).at(0)), 0.0);
  EXPECT_EQ(disturbed, clean);
}

const SceneProgram kNothing = [](const SideScene&) {};
const SceneProgram kTrain = [](const SideScene& scene) { scene.engine.backward(scene.both()); };
const SceneProgram kFail = [](const SideScene& scene) {
  scene.fail([&] { scene.engine.backward(scene.both()); });
};
const SceneProgram kTrainManually = [](const SideScene& scene) {
  scene.engine.autograd().backward(scene.both());
};
const SceneProgram kFailManually = [](const SideScene& scene) {
  scene.fail([&] { scene.engine.autograd().backward(scene.both()); });
};
const SceneProgram kTrainPast = [](const SideScene& scene) {
  scene.engine.autograd().backward(scene.past());
};

TEST(FailedBackward, Brings_nothing_though_it_failed_before_it_came_to_an_output) {
  for (const int stage : {0, 1, 2})
    for (const bool is_contiguous : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "stage " << stage << ", contiguous " << is_contiguous);
      const ZeroConfig config = side_config(stage, false, is_contiguous);
      expect_untouched(config, kNothing, kFail, kTrain);
      if (stage > 0) expect_untouched(config, kNothing, kFailManually, kTrainManually);
    }
}

// Without an output of the engine's forward the gradient hooks alone say that it came.
TEST(FailedBackward, Leaves_a_backward_past_the_engine_in_the_window) {
  for (const int stage : {1, 2})
    for (const bool is_contiguous : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "stage " << stage << ", contiguous " << is_contiguous);
      const ZeroConfig config = side_config(stage, false, is_contiguous);
      expect_untouched(config, kTrainPast, kFailManually, kTrainManually);
    }
}

// Its hooks are at no boundary, whatever the last window ended with: it waits on its rank.
TEST(FailedBackward, Leaves_what_came_before_any_forward_of_the_window) {
  for (const bool has_overlap : {false, true}) {
    SCOPED_TRACE(::testing::Message() << "overlap " << has_overlap);
    ZeroConfig config = side_config(1, has_overlap);
    config.gradient_accumulation_steps = 2;
    const SceneProgram first = [](const SideScene& scene) {
      for (int micro = 0; micro < 2; ++micro) {
        kTrain(scene);
        scene.engine.step();
      }
      kTrainPast(scene);
      scene.engine.step();
    };
    expect_untouched(config, first, kFail, kTrain);
  }
}

TEST(FailedBackward, Leaves_what_no_sync_kept_local) {
  for (const int stage : {0, 1})
    for (const bool has_overlap : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "stage " << stage << ", overlap " << has_overlap);
      const SceneProgram first = [](const SideScene& scene) {
        scene.engine.no_sync([&] { kTrain(scene); });
      };
      expect_untouched(side_config(stage, has_overlap), first, kFail, kTrain);
    }
}

}  // namespace
}  // namespace zeroproof
