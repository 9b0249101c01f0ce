// Iterations that are captured: the same bits as others, and no question to the device on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/engine/support/capturing_runtime.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

struct Case {
  int stage = 0;
  bool is_bf16 = false;
  double clip = 0.0;
  bool gathers_ahead = false;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const Case& one = info.param;
  return "stage" + std::to_string(one.stage) + (one.is_bf16 ? "_bf16" : "_float32") +
         (one.clip == 0.0  ? "_unclipped"
          : one.clip < 1.0 ? "_clipped"
                           : "_below_the_clip") +
         (one.gathers_ahead ? "_ahead" : "");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int stage : {0, 1, 2, 3})
    for (const bool is_bf16 : {false, true})
      for (const double clip : {0.0, 0.01, 100.0}) {
        all.push_back({stage, is_bf16, clip});
        if (stage == 1 || stage == 2) all.push_back({stage, is_bf16, clip, true});
      }
  return all;
}

ZeroConfig config_of(const Case& one) {
  ZeroConfig config{.stage = one.stage, .gradient_clipping = one.clip};
  config.bf16 = {.enabled = one.is_bf16, .check_grad_overflow = false};
  if (one.gathers_ahead) {
    config.overlap_comm = true;
    config.allgather_bucket_size = 6;
  }
  return config;
}

// What a run of one rank leaves.
struct Outcome {
  std::vector<FullTensor> parameters;
  std::vector<FullTensor> states;
  double norm = 0.0;
  std::int64_t micro_steps = 0;
  std::int64_t global_steps = 0;
};

void expect_equal(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_EQ(a.parameters[i].values, b.parameters[i].values) << a.parameters[i].name;
  ASSERT_EQ(a.states.size(), b.states.size());
  for (std::size_t i = 0; i < a.states.size(); ++i)
    EXPECT_EQ(a.states[i].values, b.states[i].values) << a.states[i].name;
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.micro_steps, b.micro_steps);
  EXPECT_EQ(a.global_steps, b.global_steps);
}

constexpr int kEagerSteps = 3;

// `steps` on one batch; those after the eager ones captured and replayed, if at all.
Outcome train(const Case& one, Runtime& runtime, int steps, bool captures) {
  Autograd autograd(runtime.ops());
  MlpModel model;
  auto engine = Engine::initialize(autograd, model, config_of(one), runtime,
                                   {.gathers_ahead = one.gathers_ahead})
                    .value();
  const DType dtype = engine->config().model_dtype();
  const Tensor x = runtime.ops().place(
      runtime.ops().cast(filled({2, 4}, 0.1 * (1 + runtime.rank())), dtype).on(runtime.device()));
  Outcome outcome;
  const auto iterate = [&] {
    engine->backward(engine->forward(x));
    outcome.norm = engine->step().grad_norm.value_or(-1.0);
  };
  for (int step = 0; step < steps; ++step) {
    if (!captures || step < kEagerSteps) {
      iterate();
    } else if (step == kEagerSteps) {
      const auto captured = engine->capture(iterate);
      EXPECT_TRUE(captured) << captured.error().text;
    } else {
      engine->replay();
    }
  }
  if (captures) outcome.norm = engine->replayed_grad_norm();
  outcome.parameters = engine->full_parameters();
  outcome.states = engine->full_optimizer_state();
  outcome.micro_steps = engine->micro_steps();
  outcome.global_steps = engine->global_steps();
  return outcome;
}

class CapturedIteration : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Engine, CapturedIteration, ::testing::ValuesIn(cases()), name_of);

TEST_P(CapturedIteration, Has_the_bits_of_others_and_asks_the_device_nothing) {
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    CapturingRuntime capturing(runtime);
    const Outcome captured = train(GetParam(), capturing, kEagerSteps + 1, true);
    expect_equal(train(GetParam(), runtime, kEagerSteps + 1, false), captured);
  });
}

// On a GPU replays do the work, each as the step that it is.
class CudaGraphs : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    if (visible_gpus() > 0) gpus_ = Gpus::open(std::min(4, visible_gpus())).value();
  }
  static void TearDownTestSuite() { gpus_.reset(); }
  void SetUp() override {
    if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }

  static std::optional<Gpus> gpus_;
};
std::optional<Gpus> CudaGraphs::gpus_;
INSTANTIATE_TEST_SUITE_P(Cuda, CudaGraphs, ::testing::ValuesIn(cases()), name_of);

TEST_P(CudaGraphs, Replay_a_captured_iteration_with_the_bits_of_others_and_of_the_host) {
  const int ranks = gpus_->count();
  std::vector<Outcome> on_host(static_cast<std::size_t>(ranks));
  HostWorld({.world_size = ranks, .device = Device::cuda(0)}).run([&](Runtime& runtime) {
    on_host[static_cast<std::size_t>(runtime.rank())] =
        train(GetParam(), runtime, kEagerSteps + 5, false);
  });
  CudaWorld world({.world_size = ranks}, *gpus_);
  world.run([&](Runtime& runtime) {
    const Outcome eager = train(GetParam(), runtime, kEagerSteps + 5, false);
    expect_equal(on_host[static_cast<std::size_t>(runtime.rank())], eager);
    expect_equal(eager, train(GetParam(), runtime, kEagerSteps + 5, true));
  });
}

std::string fault_of(Runtime& runtime, const std::function<void()>& work) {
  try {
    runtime.graphs()->capture(work);
  } catch (const RuntimeFault& fault) {
    return fault.what();
  }
  return "it was captured";
}

TEST(CudaGraphCapture, Refuses_what_no_replay_could_do_and_leaves_a_world_that_works) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  CudaWorld world({.world_size = 1}, Gpus::open(1).value());
  world.run([&](Runtime& runtime) {
    Kernels& kernels = runtime.kernels();
    Stream& stream = runtime.stream(StreamRole::compute);
    const Tensor kept = runtime.memory().allocate(3, DType::float32);
    Tensor earlier = runtime.memory().allocate(3, DType::float32);
    kernels.fill(stream, Span::of(kept), 2.0);
    EXPECT_THAT(fault_of(runtime, [&] { kernels.read(stream, Span::of(kept)); }),
                HasSubstr("the host reads numbers of the GPU"));
    EXPECT_THAT(fault_of(runtime,
                         [&] {
                           kernels.write(stream, Span::of(kept), {1, 2, 3});
                         }),
                HasSubstr("numbers of the host are copied"));
    EXPECT_THAT(
        fault_of(runtime, [&] { runtime.memory().allocate(3, DType::float32, Placement::host); }),
        HasSubstr("memory of the host is taken"));
    EXPECT_THAT(fault_of(runtime, [&] { earlier = {}; }),
                HasSubstr("gives back memory that the one before it took"));
    const auto graph =
        runtime.graphs()->capture([&] { kernels.scale(stream, Span::of(kept), 3.0); });
    EXPECT_EQ(kept.values(), std::vector<double>(3, 2.0)) << "nothing is done by a capture";
    graph->replay();
    graph->replay();
    EXPECT_EQ(kept.values(), std::vector<double>(3, 18.0));
  });
}

TEST(CapturedIterations, Count_every_replay_as_a_step) {
  HostWorld world({.world_size = 1});
  CapturingRuntime runtime(world.runtime(0));
  const Outcome outcome = train({.stage = 1}, runtime, kEagerSteps + 4, true);
  EXPECT_EQ(outcome.micro_steps, kEagerSteps + 4);
  EXPECT_EQ(outcome.global_steps, kEagerSteps + 4);
  int counted = 0;
  for (const FullTensor& state : outcome.states) {
    if (!state.name.ends_with("/step")) continue;
    ++counted;
    EXPECT_EQ(state.values.front(), kEagerSteps + 4) << state.name;
  }
  EXPECT_GT(counted, 0);
}

std::string refusal(Runtime& runtime, const ZeroConfig& config) {
  Autograd autograd(runtime.ops());
  MlpModel model;
  auto engine = Engine::initialize(autograd, model, config, runtime).value();
  const auto captured = engine->capture([] { FAIL() << "it ran"; });
  return captured ? "" : captured.error().text;
}

TEST(CapturedIterations, Are_refused_where_the_host_has_to_decide) {
  HostWorld world({.world_size = 1});
  CapturingRuntime runtime(world.runtime(0));
  const auto config = [](int stage) { return ZeroConfig{.stage = stage}; };
  EXPECT_THAT(refusal(world.runtime(0), config(1)), HasSubstr("the CUDA runtime captures"));
  ZeroConfig fp16 = config(2);
  fp16.fp16 = {.enabled = true};
  EXPECT_THAT(refusal(runtime, fp16), HasSubstr("looks for overflow"));
  ZeroConfig checked = config(2);
  checked.bf16 = {.enabled = true, .check_grad_overflow = true};
  EXPECT_THAT(refusal(runtime, checked), HasSubstr("check_grad_overflow"));
  checked.stage = 3;  // which does not look at bf16
  ZeroConfig offloaded = config(2);
  offloaded.offload_optimizer = OffloadDevice::cpu;
  EXPECT_THAT(refusal(runtime, offloaded), HasSubstr("leave out offload"));
}

TEST(CapturedIterations, Are_refused_in_the_middle_of_a_window) {
  HostWorld world({.world_size = 1});
  CapturingRuntime runtime(world.runtime(0));
  Autograd autograd(runtime.ops());
  MlpModel model;
  auto engine = Engine::initialize(autograd, model, {.stage = 2}, runtime).value();
  engine->backward(engine->forward(filled({2, 4}, 0.1)));
  const auto captured = engine->capture([] {});
  ASSERT_FALSE(captured);
  EXPECT_THAT(captured.error().text, HasSubstr("a window of gradients is open"));
}

TEST(CapturedIterations, Are_refused_before_the_first_step_of_sgd_with_momentum) {
  HostWorld world({.world_size = 1});
  CapturingRuntime runtime(world.runtime(0));
  for (const double momentum : {0.0, 0.9}) {
    Autograd autograd(runtime.ops());
    MlpModel model;
    ZeroConfig config{.stage = 1};
    config.optimizer.type = OptimizerType::sgd;
    config.optimizer.sgd.momentum = momentum;
    auto engine = Engine::initialize(autograd, model, config, runtime).value();
    const auto iterate = [&] {
      engine->backward(engine->forward(filled({2, 4}, 0.1)));
      engine->step();
    };
    const auto first = engine->capture(iterate);
    EXPECT_EQ(momentum == 0.0, first.has_value());
    if (!first) {
      EXPECT_THAT(first.error().text, HasSubstr("fills its momentum buffers"));
      iterate();
    }
    EXPECT_TRUE(engine->capture(iterate));
  }
}

}  // namespace
}  // namespace zeroproof
