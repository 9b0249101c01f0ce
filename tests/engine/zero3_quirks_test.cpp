// Each upstream behaviour of stage 3 that is wrong changes what a window adds up to.
#include <gtest/gtest.h>

#include <cmath>

#include "model/cpu_ops.h"
#include "tests/engine/support/one_quirk.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

// Two linears, each of which may be left out of a micro-batch.
class SwitchModel final : public nn::Module {
 public:
  SwitchModel() {
    a_ = register_module("a", linear_layer(4, 3));
    b_ = register_module("b", linear_layer(4, 3));
  }
  bool uses_a = true;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean_square(ag, (uses_a ? *a_ : *b_)(ag, inputs.at(0)))};
  }

 private:
  std::shared_ptr<nn::Linear> a_, b_;
};

using QuirkProgram = std::function<void(Engine& engine, SwitchModel& model, const Tensor& x)>;

// Absolute gradients of both after the program, summed.
std::pair<double, double> sums(const QuirkProgram& program, Quirks quirks,
                               bool is_offloaded = false, double predivide_factor = 1.0) {
  std::pair<double, double> result;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    SwitchModel model;
    ZeroConfig config{.stage = 3, .gradient_accumulation_steps = 2};
    config.stage3_param_persistence_threshold = 0;
    config.gradient_clipping = 0.0;
    config.optimizer.type = OptimizerType::sgd;
    config.optimizer.sgd.lr = 0.0;
    config.reduce_scatter = predivide_factor == 1.0;
    config.gradient_predivide_factor = predivide_factor;
    if (is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
    auto engine = Engine::initialize(ag, model, config, runtime, {.quirks = quirks}).value();
    program(*engine, model, filled({2, 4}, 0.1));
    const auto gradients = engine->full_gradients();
    if (runtime.rank() != 0) return;
    for (const FullTensor& gradient : gradients)
      for (const double value : gradient.values)
        (gradient.name.starts_with("a") ? result.first : result.second) += std::abs(value);
  });
  return result;
}

void micro_batch(Engine& engine, SwitchModel& model, const Tensor& x, bool uses_a) {
  model.uses_a = uses_a;
  engine.backward(engine.forward(x));
}

TEST(Zero3Quirks, H16_applies_a_gradient_of_an_earlier_window) {
  const QuirkProgram program = [](Engine& engine, SwitchModel& model, const Tensor& x) {
    micro_batch(engine, model, x, true);
    engine.step();
    micro_batch(engine, model, x, false);
    engine.step();
    micro_batch(engine, model, x, true);
    engine.step();
    micro_batch(engine, model, x, true);
  };
  EXPECT_EQ(sums(program, {}).second, 0.0);
  EXPECT_GT(sums(program, only(Quirk::h16_partition_never_cleared)).second, 0.0);
}

TEST(Zero3Quirks, H3_keeps_only_the_last_backward_over_one_forward) {
  const QuirkProgram once = [](Engine& engine, SwitchModel& model, const Tensor& x) {
    micro_batch(engine, model, x, true);
  };
  const QuirkProgram twice = [](Engine& engine, SwitchModel& model, const Tensor& x) {
    model.uses_a = true;
    const Tensor loss = engine.forward(x);
    engine.backward(loss, {.retain_graph = true});
    engine.backward(loss);
  };
  const double single = sums(once, {}).first;
  EXPECT_NEAR(sums(twice, {}).first, 2.0 * single, 1e-5);
  EXPECT_NEAR(sums(twice, only(Quirk::h3_micro_step_counts_forwards)).first, single, 1e-5);
}

TEST(Zero3Quirks, H3_adds_after_a_forward) {
  const QuirkProgram program = [](Engine& engine, SwitchModel& model, const Tensor& x) {
    micro_batch(engine, model, x, true);
    micro_batch(engine, model, x, true);
  };
  EXPECT_EQ(sums(program, {}), sums(program, only(Quirk::h3_micro_step_counts_forwards)));
}

EngineErrorId error_of(const QuirkProgram& program, Quirks quirks) {
  try {
    sums(program, quirks);
  } catch (const EngineError& error) {
    return error.id();
  }
  return EngineErrorId::manual_backward_unsupported;  // none
}

// Both uses of a tied weight are segments of their own.
TEST(Zero3Quirks, H13_refuses_a_parameter_that_comes_twice) {
  const auto outcome = [](Quirks quirks) {
    EngineErrorId id = EngineErrorId::manual_backward_unsupported;
    HostWorld world({});
    const CpuOps ops;
    Autograd ag(ops);
    BlocksModel model([shared = std::shared_ptr<BlockModel>()](
                          Autograd& autograd, const nn::Module& block, const Tensor& x) mutable {
      const auto once = [&](const Tensor& in) {
        return checkpoint(autograd, CheckpointKind::reentrant,
                          [&](const TensorList& inputs) { return block(autograd, inputs); }, {in});
      };
      return once(once(x).at(0));
    });
    auto engine = Engine::initialize(ag, model, {.stage = 3, .reduce_bucket_size = 1000},
                                     world.runtime(0), {.quirks = quirks})
                      .value();
    try {
      engine->backward(engine->forward(filled({2, 4}, 0.1)));
    } catch (const EngineError& error) {
      id = error.id();
    }
    return id;
  };
  EXPECT_EQ(outcome({}), EngineErrorId::manual_backward_unsupported);
  EXPECT_EQ(outcome(only(Quirk::h13_param_once_per_backward)),
            EngineErrorId::parameter_twice_in_bucket);
}

TEST(Zero3Quirks, H24_refuses_two_backwards_of_a_leaf_module_in_one_flush) {
  const auto outcome = [](Quirks quirks) {
    const QuirkProgram program = [](Engine& engine, SwitchModel& model, const Tensor& x) {
      const Tensor input = x.detach();
      input.set_requires_grad(true);
      engine.set_leaf_module(model);
      const Tensor first = engine.forward(input);
      const Tensor second = engine.forward(input);
      engine.backward(add(engine.autograd(), first, second));
    };
    return error_of(program, quirks);
  };
  EXPECT_EQ(outcome({}), EngineErrorId::manual_backward_unsupported);
  EXPECT_EQ(outcome(only(Quirk::h24_leaf_bucketed_per_backward)),
            EngineErrorId::parameter_twice_in_bucket);
}

TEST(Zero3Quirks, Zero_grad_begins_the_window_again) {
  const QuirkProgram program = [](Engine& engine, SwitchModel& model, const Tensor& x) {
    micro_batch(engine, model, x, false);
    engine.zero_grad();
    micro_batch(engine, model, x, true);
  };
  EXPECT_EQ(sums(program, {}).second, 0.0);
  EXPECT_GT(sums(program, {}).first, 0.0);
}

// Also where it is the number of ranks, which upstream divides by once more (N11).
TEST(Zero3Quirks, A_predivide_factor_changes_no_gradient) {
  const QuirkProgram program = [](Engine& engine, SwitchModel& model, const Tensor& x) {
    micro_batch(engine, model, x, true);
    engine.step();
    micro_batch(engine, model, x, false);
  };
  const auto expected = sums(program, {});
  EXPECT_GT(expected.first, 0.0);
  for (const double factor : {2.0, 4.0}) EXPECT_EQ(sums(program, {}, false, factor), expected);
}

// The weights move: whether an update used what an earlier micro-batch left (H21).
TEST(Zero3Quirks, H21_loses_what_fired_before_the_boundary) {
  const auto moved = [](Quirks quirks) {
    double change = 0.0;
    HostWorld world({.world_size = 2});
    world.run([&](Runtime& runtime) {
      const CpuOps ops;
      Autograd ag(ops);
      SwitchModel model;
      ZeroConfig config{.stage = 3, .gradient_accumulation_steps = 2};
      config.offload_optimizer = OffloadDevice::cpu;
      config.optimizer.type = OptimizerType::sgd;
      config.optimizer.sgd.lr = 0.5;
      config.zero_force_ds_cpu_optimizer = false;
      auto engine = Engine::initialize(ag, model, config, runtime, {.quirks = quirks}).value();
      const auto before = engine->full_parameters();
      micro_batch(*engine, model, filled({2, 4}, 0.1), true);
      engine->step();
      micro_batch(*engine, model, filled({2, 4}, 0.1), false);
      engine->step();
      const auto after = engine->full_parameters();
      for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i].name.starts_with("a") && runtime.rank() == 0)
          for (std::size_t j = 0; j < before[i].values.size(); ++j)
            change += std::abs(before[i].values[j] - after[i].values[j]);
    });
    return change;
  };
  EXPECT_GT(moved({}), 0.0);
  EXPECT_EQ(moved(only(Quirk::h21_offload_copies_boundary_only)), 0.0);
}

}  // namespace
}  // namespace zeroproof
