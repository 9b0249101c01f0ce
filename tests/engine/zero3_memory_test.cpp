// Stage 3 keeps no more of the model gathered than its configuration allows (M11, 3.3).
#include <gtest/gtest.h>

#include "model/cpu_ops.h"
#include "model/nn/sequential.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kLayerWidth = 16;
constexpr int kLayers = 12;
constexpr std::int64_t kLayerElements = kLayerWidth * kLayerWidth;

std::shared_ptr<nn::Module> layer(int index) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < kLayerElements; ++i)
    values.push_back(0.0625 * static_cast<double>((i * 7 + index) % 9 - 4));
  Tensor weight = Tensor::of(values, {kLayerWidth, kLayerWidth}, DType::float32);
  weight.set_requires_grad(true);
  return std::make_shared<nn::Linear>(weight);
}

std::shared_ptr<nn::Sequential> deep_model() {
  std::vector<std::shared_ptr<nn::Module>> layers;
  for (int i = 0; i < kLayers; ++i) layers.push_back(layer(i));
  return std::make_shared<nn::Sequential>(layers);
}

// Bytes that were gathered at most, over what the engine holds between steps.
std::int64_t gathered_bytes_max(int world_size, std::int64_t prefetch_elements,
                                std::int64_t live_elements) {
  std::int64_t most = 0;
  HostWorld world({.world_size = world_size});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    const auto model = deep_model();
    const ZeroConfig config{.stage = 3,
                            .reduce_bucket_size = kLayerElements,
                            .stage3_prefetch_bucket_size = prefetch_elements,
                            .stage3_param_persistence_threshold = 0,
                            .stage3_max_live_parameters = live_elements,
                            .stage3_max_reuse_distance = 0};
    auto engine = Engine::initialize(autograd, *model, config, runtime).value();
    const Tensor x = Tensor::full({2, kLayerWidth}, 0.25, DType::float32);
    const auto train_one = [&] {
      engine->backward(mean(autograd, sq(autograd, engine->forward(x))));
      engine->step();
    };
    train_one();  // recorded: gathers ahead come with the second
    train_one();
    const std::int64_t base = runtime.memory().stats(Placement::device).live_bytes;
    runtime.memory().reset_peak();
    train_one();
    const std::int64_t peak = runtime.memory().stats(Placement::device).peak_bytes;
    if (runtime.rank() == 0) most = peak - base;
  });
  return most;
}

constexpr std::int64_t kModelBytes = kLayers * kLayerElements * std::int64_t{sizeof(float)};

// A gather holds the slices of all ranks beside the parameters made of them; reducing and stepping
// hold a bucket and a shard in the master's dtype, and a backward the shard that it has reduced.
std::int64_t bound(std::int64_t gathered_layers, int world_size) {
  constexpr std::int64_t kCopies = 2;
  constexpr std::int64_t kReducing = 3 * kLayerElements;
  return (kCopies * gathered_layers * kLayerElements + kReducing) * item_bytes(DType::float32) +
         kModelBytes / world_size;
}

// One fetch gathers at most a prefetch bucket ahead, all of them together the live budget, each
// and the last parameter taken (P69).
TEST(Zero3Memory, Stays_below_the_live_budget_in_every_world) {
  for (const int world_size : {1, 2, 4}) {
    const std::int64_t live = 3;
    const std::int64_t most =
        gathered_bytes_max(world_size, 2 * kLayerElements, live * kLayerElements);
    EXPECT_LE(most, bound(live + 1, world_size)) << world_size;
    EXPECT_LT(most, kModelBytes + kModelBytes / world_size) << world_size;
    EXPECT_GT(most, kLayerElements * item_bytes(DType::float32)) << "nothing was gathered";
  }
}

// What a backward reduces has memory until it joins the window's sum: a forward finds it free.
TEST(Zero3Memory, Holds_one_sum_of_gradients_between_steps) {
  for (const int stage : {1, 2, 3}) {
    HostWorld world({.world_size = 2});
    world.run([&](Runtime& runtime) {
      const CpuOps ops;
      Autograd autograd(ops);
      const auto model = deep_model();
      const ZeroConfig config{.stage = stage,
                              .reduce_bucket_size = kLayerElements,
                              .stage3_param_persistence_threshold = 0,
                              .stage3_max_reuse_distance = 0};
      auto engine = Engine::initialize(autograd, *model, config, runtime).value();
      const Tensor x = Tensor::full({2, kLayerWidth}, 0.25, DType::float32);
      engine->backward(mean(autograd, sq(autograd, engine->forward(x))));
      engine->step();
      const std::int64_t weights = stage == 3 ? kModelBytes / 2 : kModelBytes;
      const std::int64_t optimizer = 3 * kModelBytes / 2;  // master and both moments
      const std::int64_t window = kModelBytes / 2;
      const std::int64_t buckets = stage == 3 ? 0 : kLayerElements * item_bytes(DType::float32);
      EXPECT_EQ(weights + optimizer + window + buckets,
                runtime.memory().stats(Placement::device).live_bytes)
          << stage;
    });
  }
}

TEST(Zero3Memory, Obeys_the_budget_of_live_parameters) {
  const std::int64_t free = gathered_bytes_max(2, kLayers * kLayerElements, 1'000'000);
  const std::int64_t limited = gathered_bytes_max(2, kLayers * kLayerElements, 3 * kLayerElements);
  EXPECT_LE(limited, bound(4, 2));
  EXPECT_GT(free, limited);
}

}  // namespace
}  // namespace zeroproof
