// Stage 3 where the compiler skipped every frame (docs/spec/zero.md 5, P81 to P85).
#include <gtest/gtest.h>

#include "model/cpu_ops.h"
#include "model/nn/embedding.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kFramesWidth = 6;

Tensor trainable_net(Shape sizes) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < numel(sizes); ++i)
    values.push_back(0.125 * static_cast<double>((i * 5 + 2) % 9) - 0.5);
  Tensor tensor = Tensor::of(values, std::move(sizes), DType::float32);
  tensor.set_requires_grad(true);
  return tensor;
}

// An embedding, whose backward needs no weights, and a linear after it, whose does.
class FramesNet final : public nn::Module {
 public:
  FramesNet() {
    embedding_ =
        register_module("embedding", std::make_shared<nn::Embedding>(trainable_net({5, 4})));
    linear_ =
        register_module("linear", std::make_shared<nn::Linear>(trainable_net({kFramesWidth, 4})));
  }
  const Tensor& weight() const { return linear_->weight; }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean(ag, sq(ag, (*linear_)(ag, (*embedding_)(ag, inputs.at(0)))))};
  }

 private:
  std::shared_ptr<nn::Embedding> embedding_;
  std::shared_ptr<nn::Linear> linear_;
};

Tensor frame_rows(double first) {
  return Tensor::of({first, 4.0 - first, 2.0}, {3}, DType::float32);
}

struct Setup {
  int stage = 3;
  FallbackRule rule = FallbackRule::per_graph;
};

using FramesProgram = std::function<void(Engine& engine, FramesNet& net)>;

std::vector<FullTensor> run_frames(const Setup& setup, const FramesProgram& program) {
  std::vector<FullTensor> gradients;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    FramesNet net;
    const ZeroConfig config{.stage = setup.stage, .stage3_param_persistence_threshold = 0};
    auto engine =
        Engine::initialize(autograd, net, config, runtime,
                           {.skips_frames = setup.stage == 3, .fallback_rule = setup.rule})
            .value();
    program(*engine, net);
    auto values = engine->full_gradients();
    if (runtime.rank() == 0) gradients = std::move(values);
  });
  return gradients;
}

void expect_equal(const FramesProgram& program) {
  const auto expected = run_frames({.stage = 2}, program);
  const auto actual = run_frames({.stage = 3}, program);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].name, actual[i].name);
    for (std::size_t j = 0; j < expected[i].values.size(); ++j)
      EXPECT_NEAR(expected[i].values[j], actual[i].values[j], 1e-7) << expected[i].name;
  }
}

bool is_whole(const FramesNet& net) {
  return net.weight().numel() == kFramesWidth * 4;
}

void expect_released(const Engine& engine, const FramesNet& net) {
  EXPECT_EQ(is_whole(net), engine.config().stage != 3);
}

void outstanding_forwards(Engine& engine, FramesNet& net) {
  const Tensor first = engine.forward(frame_rows(0.0));
  const Tensor second = engine.forward(frame_rows(1.0));
  EXPECT_TRUE(is_whole(net)) << "a forward that can have a backward claims what it read";
  engine.backward(first);
  EXPECT_TRUE(is_whole(net)) << "the other forward still claims it";
  engine.backward(second);
  expect_released(engine, net);
}

TEST(SkippedFrames, Parameters_stay_for_every_outstanding_forward) {
  expect_equal(outstanding_forwards);
}

TEST(SkippedFrames, Releasing_too_early_is_caught) {
  const FramesProgram program = [](Engine& engine, FramesNet&) {
    const Tensor first = engine.forward(frame_rows(0.0));
    const Tensor second = engine.forward(frame_rows(1.0));
    engine.backward(first);
    engine.backward(second);
  };
  EXPECT_NO_THROW(run_frames({}, program));
  EXPECT_ANY_THROW(run_frames({.rule = FallbackRule::after_any_backward}, program));
  EXPECT_ANY_THROW(run_frames({.rule = FallbackRule::after_forward}, program));
}

TEST(SkippedFrames, An_inference_forward_claims_nothing) {
  expect_equal([](Engine& engine, FramesNet& net) {
    {
      const GradMode no_grad(engine.autograd(), false);
      engine.forward(frame_rows(2.0));
      engine.forward(frame_rows(1.0));
    }
    engine.backward(engine.forward(frame_rows(0.0)));
    expect_released(engine, net);
  });
}

TEST(SkippedFrames, A_guard_gathers_nothing) {
  run_frames({}, [](Engine& engine, FramesNet& net) {
    engine.set_guard_evaluation(true);
    EXPECT_ANY_THROW(engine.forward(frame_rows(0.0))) << "nothing gathers the embedding";
    engine.set_guard_evaluation(false);
    EXPECT_FALSE(is_whole(net));
    engine.backward(engine.forward(frame_rows(0.0)));
  });
}

TEST(SkippedFrames, A_context_of_the_user_ends_without_taking_what_a_graph_claims) {
  expect_equal([](Engine& engine, FramesNet& net) {
    const Tensor loss = engine.forward(frame_rows(0.0));
    engine.gathered_parameters({net.weight()}, 0, [] {});
    EXPECT_TRUE(is_whole(net));
    engine.backward(loss);
    expect_released(engine, net);
  });
}

TEST(SkippedFrames, A_modifier_rank_s_update_survives_the_claim) {
  run_frames({}, [](Engine& engine, FramesNet& net) {
    const Tensor loss = engine.forward(frame_rows(0.0));
    engine.gathered_parameters({net.weight()}, 0, [&] {
      if (engine.runtime().rank() == 0)
        engine.runtime().kernels().fill(engine.runtime().stream(StreamRole::compute),
                                        Span::of(net.weight()), 0.25);
    });
    engine.backward(loss);
    engine.gathered_parameters({net.weight()}, std::nullopt, [&] {
      EXPECT_EQ(net.weight().values(), std::vector<double>(kFramesWidth * 4, 0.25));
    });
  });
}

TEST(SkippedFrames, An_exception_between_leaves_nothing_behind) {
  expect_equal([](Engine& engine, FramesNet& net) {
    const Tensor lost = engine.forward(frame_rows(1.0));
    lost.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("injected"); });
    EXPECT_THROW(engine.backward(lost), std::runtime_error);
    engine.release_gathered_parameters();
    engine.backward(engine.forward(frame_rows(0.0)));
    expect_released(engine, net);
  });
}

TEST(SkippedFrames, Live_memory_is_what_is_claimed) {
  run_frames({}, [](Engine& engine, FramesNet&) {
    Memory& memory = engine.runtime().memory();
    engine.backward(engine.forward(frame_rows(0.0)));  // buckets and windows are there from now on
    engine.step();
    const std::int64_t base = memory.stats(Placement::device).live_bytes;
    const std::int64_t whole_bytes = (5 * 4 + kFramesWidth * 4) * 4;
    std::int64_t gathered = 0;
    {
      const Tensor first = engine.forward(frame_rows(0.0));
      const Tensor second = engine.forward(frame_rows(1.0));
      gathered = memory.stats(Placement::device).live_bytes - base;
      EXPECT_LE(gathered, 2 * whole_bytes) << "the slices of all ranks, and the parameters";
      engine.backward(first);
      engine.backward(second);
    }
    EXPECT_GE(gathered, whole_bytes) << "the fallback did not gather anything";
    engine.step();
    EXPECT_EQ(memory.stats(Placement::device).live_bytes, base);
  });
}

}  // namespace
}  // namespace zeroproof
