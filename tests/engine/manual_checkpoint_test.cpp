// Checkpoints around the engine's forward in a manual backward: each has an epilogue of its own,
// and all are one backward of the user's (docs/spec/zero.md 2.8).
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

struct CheckpointCase {
  int stage = 1;
  int forwards = 2;
  std::optional<CheckpointKind> kind;  // none: the engine's forward as it is
  bool is_managed = true;              // gradient accumulation
};

// What a window with one manual backward comes to.
struct ManuallyTrained {
  std::vector<std::vector<double>> parameters;
  std::int64_t samples = 0;
  bool is_second_refused = false;  // of a second backward without a scaled loss

  friend bool operator==(const ManuallyTrained&, const ManuallyTrained&) = default;
};

Tensor checkpointed_loss(Engine& engine, const CheckpointCase& given) {
  Autograd& ag = engine.autograd();
  const Tensor x = trainable({2, 4}, 0.1);
  if (!given.kind) return engine.forward(x);
  const auto body = [&engine](const TensorList& inputs) { return engine.forward(inputs); };
  return checkpoint(ag, *given.kind, body, {x}).at(0);
}

Tensor summed_loss(Engine& engine, const CheckpointCase& given) {
  Tensor sum = checkpointed_loss(engine, given);
  for (int more = 1; more < given.forwards; ++more)
    sum = add(engine.autograd(), sum, checkpointed_loss(engine, given));
  return sum;
}

ZeroConfig checkpointed_config(const CheckpointCase& given) {
  ZeroConfig config{.stage = given.stage, .gradient_clipping = 0.0};
  config.managed_gradient_accumulation = given.is_managed;
  config.optimizer.type = OptimizerType::sgd;
  config.optimizer.sgd.lr = 0.5;
  return config;
}

ManuallyTrained train_manually(const CheckpointCase& given, const EngineOptions& options = {}) {
  ManuallyTrained trained;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    auto engine =
        Engine::initialize(ag, model, checkpointed_config(given), runtime, options).value();
    ASSERT_TRUE(engine->override_loss_scale(4.0));
    ag.backward(engine->scale(summed_loss(*engine, given)));
    engine->step();
    bool is_refused = false;
    const Tensor unscaled = summed_loss(*engine, given);
    try {
      ag.backward(unscaled);
    } catch (const EngineError& error) {
      is_refused = error.id() == EngineErrorId::backward_without_loss_scaling;
    }
    const auto parameters = engine->full_parameters();
    if (runtime.rank() != 0) return;
    for (const FullTensor& parameter : parameters) trained.parameters.push_back(parameter.values);
    trained.samples = engine->global_samples();
    trained.is_second_refused = is_refused;
  });
  return trained;
}

TEST(ManualCheckpoints, Are_one_backward_with_one_scale) {
  for (const int stage : {1, 2})
    for (const int forwards : {1, 2, 3})
      for (const bool is_managed : {true, false}) {
        SCOPED_TRACE(::testing::Message() << "stage " << stage << ", " << forwards
                                          << " forwards, managed " << is_managed);
        const ManuallyTrained plain = train_manually({stage, forwards, std::nullopt, is_managed});
        EXPECT_EQ(plain.samples, 2);
        EXPECT_TRUE(plain.is_second_refused);
        EXPECT_EQ(train_manually({stage, forwards, CheckpointKind::reentrant, is_managed}), plain);
        EXPECT_EQ(train_manually({stage, forwards, CheckpointKind::non_reentrant, is_managed}),
                  plain);
      }
}

// The first checkpoint's epilogue has reduced when the second one fails.
TEST(ManualCheckpoints, Refuse_a_step_when_a_later_one_failed_until_zero_grad) {
  HostWorld world({});
  const CpuOps ops;
  Autograd ag(ops);
  MlpModel model;
  const CheckpointCase given{.kind = CheckpointKind::reentrant};
  auto engine = Engine::initialize(ag, model, checkpointed_config(given), world.runtime(0)).value();
  int gradients = 0;
  const Tensor weight = model.named_parameters().front().tensor;
  weight.register_hook([&](const Tensor&) -> Tensor {
    if (++gradients == 2) throw std::runtime_error("a hook of the user's");
    return {};
  });
  EXPECT_THROW(ag.backward(summed_loss(*engine, given)), std::runtime_error);
  EXPECT_THROW(engine->step(), EngineError);
  engine->zero_grad();
  ag.backward(summed_loss(*engine, given));
  engine->step();
  EXPECT_EQ(engine->global_steps(), 1);
}

// As DeepSpeed 0.19.8 does: the first checkpoint's epilogue takes the scale for all of them.
TEST(ManualCheckpoints, Need_a_scale_each_under_policies_of_upstream) {
  const CheckpointCase given{.kind = CheckpointKind::reentrant};
  const EngineOptions upstream{.policy = "deepspeed-0.19.6"};
  EXPECT_THROW(train_manually(given, upstream), EngineError);
}

}  // namespace
}  // namespace zeroproof
