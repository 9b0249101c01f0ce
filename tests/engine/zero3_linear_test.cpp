// The memory-efficient linear against the plain one, and user gather contexts.
#include "engine/zero/stage3/zero3_linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/autocast/autocast.h"
#include "model/cpu_ops.h"
#include "model/transforms/transforms.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

struct LinearCase {
  Shape x;
  bool has_bias = true;
  bool has_autocast = false;
  std::int64_t outputs = 3;
};

// Output and gradients of input, weight and bias.
std::vector<std::vector<double>> results(const LinearCase& given, bool is_ours,
                                         bool has_autocast_around) {
  const CpuOps ops;
  Autograd ag(ops);
  const auto registry = std::make_shared<Zero3Registry>();
  const Tensor x = trainable(given.x, 0.1);
  const Tensor weight = trainable({given.outputs, 4}, 0.2);
  const Tensor bias = given.has_bias ? trainable({given.outputs}, 0.3) : Tensor();
  Tensor y;
  {
    const Autocast region(ag, DeviceType::cpu, {.is_enabled = given.has_autocast});
    y = is_ours ? apply_function(ag, zero3_linear_function(ag, registry, DeviceType::cpu),
                                 {x, weight, bias})
                      .at(0)
                : linear(ag, x, weight, bias);
  }
  const Tensor loss = sum(ag, mul(ag, y, y));
  const Autocast around(ag, DeviceType::cpu, {.is_enabled = has_autocast_around && is_ours});
  ag.backward(loss);
  std::vector<std::vector<double>> all{y.values(), x.grad().values(), weight.grad().values()};
  if (given.has_bias) all.push_back(bias.grad().values());
  EXPECT_EQ(weight.grad().dtype(), DType::float32);
  return all;
}

TEST(Zero3Linear, Equals_the_plain_linear) {
  for (const Shape& x : {Shape{4}, Shape{2, 4}, Shape{2, 3, 4}})
    for (const bool has_bias : {false, true})
      for (const bool has_autocast : {false, true}) {
        const LinearCase given{x, has_bias, has_autocast};
        EXPECT_EQ(results(given, true, false), results(given, false, false))
            << x.size() << has_bias << has_autocast;
      }
}

// PyTorch's own linear gives such an input a gradient of zeros; upstream's cannot count the rows.
TEST(Zero3Linear, Without_outputs_gives_its_input_a_gradient_of_zeros) {
  for (const Shape& x : {Shape{4}, Shape{2, 4}, Shape{2, 3, 4}, Shape{0, 3, 4}})
    for (const bool has_bias : {false, true}) {
      const LinearCase given{.x = x, .has_bias = has_bias, .outputs = 0};
      const auto ours = results(given, true, false);
      EXPECT_EQ(ours, results(given, false, false)) << x.size() << has_bias;
      EXPECT_EQ(ours.at(1), std::vector<double>(static_cast<std::size_t>(numel(x)), 0.0));
    }
}

// P80: what surrounds the backward does not leak in.
TEST(Zero3Linear, Goes_back_in_the_autocast_state_of_its_forward) {
  for (const bool has_autocast : {false, true}) {
    const LinearCase given{{2, 4}, true, has_autocast};
    EXPECT_EQ(results(given, true, true).at(2), results(given, true, false).at(2));
  }
}

TensorList transformed_grads(Autograd& ag) {
  const auto registry = std::make_shared<Zero3Registry>();
  const func::Function loss = [&ag, registry](const TensorList& args) {
    const CustomFunction ours = zero3_linear_function(ag, registry, DeviceType::cpu);
    return TensorList{mean_square(ag, apply_function(ag, ours, {args[0], args[1], Tensor()})[0])};
  };
  return func::grad_and_value(ag, loss, {filled({2, 4}, 0.1), filled({3, 4}, 0.2)},
                              {.argnums = {0, 1}})
      .grads;
}

TEST(Zero3Linear, Passes_through_transforms) {
  const CpuOps ops;
  Autograd ag(ops);
  const func::Function plain = [&ag](const TensorList& args) {
    return TensorList{mean_square(ag, linear(ag, args[0], args[1], Tensor()))};
  };
  const TensorList expected =
      func::grad_and_value(ag, plain, {filled({2, 4}, 0.1), filled({3, 4}, 0.2)},
                           {.argnums = {0, 1}})
          .grads;
  const TensorList actual = transformed_grads(ag);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(expected[i].values(), actual[i].values());
}

TEST(Zero3Linear, Is_the_linear_of_the_process_while_an_engine_lives) {
  HostWorld world({});
  const CpuOps ops;
  Autograd ag(ops);
  MlpModel a, b;
  {
    auto first = Engine::initialize(ag, a, {.stage = 3}, world.runtime(0)).value();
    auto second = Engine::initialize(ag, b, {.stage = 3}, world.runtime(0)).value();
    first.reset();
    EXPECT_TRUE(ag.global().linear);
    second->backward(second->forward(filled({2, 4}, 0.1)));
  }
  EXPECT_FALSE(ag.global().linear);
}

// --- gather contexts ---------------------------------------------------------------------------

ZeroConfig gather_config(bool has_sanity_checks) {
  ZeroConfig config{.stage = 3};
  config.stage3_param_persistence_threshold = 0;
  config.enable_sanity_checks = has_sanity_checks;
  return config;
}

TensorList parameters_of(const nn::Module& module) {
  TensorList tensors;
  for (const nn::NamedParameter& named : module.named_parameters()) tensors.push_back(named.tensor);
  return tensors;
}

EngineErrorId error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const EngineError& error) {
    return error.id();
  }
  ADD_FAILURE() << "no error";
  return EngineErrorId::manual_backward_unsupported;
}

using GatherProgram = std::function<void(Engine& engine, const TensorList& parameters, int rank)>;

void with_engine(bool has_sanity_checks, const GatherProgram& program) {
  HostWorld world({.world_size = 3});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    auto engine = Engine::initialize(ag, model, gather_config(has_sanity_checks), runtime).value();
    program(*engine, parameters_of(model), runtime.rank());
    for (const Tensor& tensor : parameters_of(model)) EXPECT_EQ(tensor.numel(), 0);
  });
}

TEST(GatherContext, Takes_over_the_changes_of_the_modifier_rank) {
  with_engine(false, [](Engine& engine, const TensorList& parameters, int rank) {
    const double mark = 10.0 + rank;
    engine.gathered_parameters(parameters, 1, [&] {
      EXPECT_EQ(parameters[1].numel(), 24);
      parameters[1].impl().storage->elements.at(7) = mark;
    });
    engine.gathered_parameters(parameters, std::nullopt, [&] {
      EXPECT_EQ(parameters[1].values().at(7), 11.0);
      parameters[1].impl().storage->elements.at(7) = mark;
    });
    engine.gathered_parameters({parameters[1]}, std::nullopt,
                               [&] { EXPECT_EQ(parameters[1].values().at(7), 11.0); });
  });
}

TEST(GatherContext, Refuses_overlapping_contexts_and_restores_everything) {
  with_engine(false, [](Engine& engine, const TensorList& parameters, int) {
    engine.gathered_parameters({parameters[0], parameters[1]}, std::nullopt, [&] {
      EXPECT_EQ(EngineErrorId::gather_contexts_overlap, error_of([&] {
                  engine.gathered_parameters({parameters[2], parameters[1]}, std::nullopt, [] {});
                }));
      EXPECT_EQ(parameters[2].numel(), 0);
      engine.gathered_parameters({parameters[2]}, std::nullopt,
                                 [&] { EXPECT_NE(parameters[2].numel(), 0); });
      EXPECT_NE(parameters[0].numel(), 0);
    });
    EXPECT_THROW(
        engine.gathered_parameters(parameters, 0, [] { throw std::runtime_error("user"); }),
        std::runtime_error);
    engine.gathered_parameters(parameters, std::nullopt, [] {});
  });
}

TEST(GatherContext, Notices_changes_that_no_rank_stands_for) {
  with_engine(true, [](Engine& engine, const TensorList& parameters, int rank) {
    EXPECT_EQ(EngineErrorId::modified_without_modifier_rank, error_of([&] {
                engine.gathered_parameters(parameters, std::nullopt, [&] {
                  if (rank == 2) parameters[0].impl().storage->elements.at(0) = 5.0;
                });
              }));
  });
}

// A NaN differs from itself although no rank has changed it.
TEST(GatherContext, Takes_what_is_no_number_for_unchanged) {
  with_engine(true, [](Engine& engine, const TensorList& parameters, int rank) {
    engine.gathered_parameters(parameters, 0, [&] {
      if (rank == 0) parameters[0].impl().storage->elements.at(0) = std::nan("");
    });
    EXPECT_NO_THROW(engine.gathered_parameters(parameters, std::nullopt, [] {}));
  });
}

TEST(GatherContext, Lets_a_forward_use_what_it_holds) {
  with_engine(false, [](Engine& engine, const TensorList& parameters, int) {
    engine.gathered_parameters(parameters, std::nullopt, [&] {
      engine.backward(engine.forward(filled({2, 4}, 0.1)));
      for (const Tensor& tensor : parameters) EXPECT_NE(tensor.numel(), 0);
    });
    engine.step();
  });
}

}  // namespace
}  // namespace zeroproof
