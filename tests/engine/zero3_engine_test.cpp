// Stage 3 within an engine, policy exact: it trains as stage 0 does, and gives everything back.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "model/cpu_ops.h"
#include "model/transforms/transforms.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using MakeModel = std::function<std::shared_ptr<nn::Module>()>;

struct Training {
  ZeroConfig config;
  int world_size = 1;
  int steps = 3;
  // What becomes of one micro-batch.
  std::function<void(Engine& engine, const Tensor& x)> micro_batch =
      [](Engine& engine, const Tensor& x) { engine.backward(engine.forward(x)); };
  std::function<void(Engine& engine)> prepare = [](Engine&) {};
};

struct Zero3Outcome {
  std::vector<FullTensor> gradients;
  std::vector<FullTensor> parameters;
};

ZeroConfig stage3_config() {
  ZeroConfig config{.stage = 3};
  config.reduce_bucket_size = 60;
  config.stage3_prefetch_bucket_size = 40;
  config.stage3_param_persistence_threshold = 0;
  config.stage3_max_reuse_distance = 0;
  return config;
}

void expect_all_partitioned(Engine& engine) {
  for (const nn::NamedParameter& named : engine.module().named_parameters())
    EXPECT_EQ(named.tensor.numel(), 0) << named.name;
}

Zero3Outcome train(const MakeModel& make_model, const Training& run) {
  Zero3Outcome outcome;
  HostWorld world({.world_size = run.world_size});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    const auto model = make_model();
    auto engine = Engine::initialize(autograd, *model, run.config, runtime).value();
    run.prepare(*engine);
    for (int step = 0; step < run.steps; ++step)
      for (int micro = 0; micro < run.config.gradient_accumulation_steps; ++micro) {
        const int number = runtime.rank() + 10 * micro + 100 * step;
        run.micro_batch(*engine, filled({2, 4}, 0.01 * number));
        const auto gradients = engine->full_gradients();
        if (runtime.rank() == 0) outcome.gradients = gradients;
        const bool is_three = run.config.stage == 3;
        if (is_three && run.config.stage3_param_persistence_threshold == 0)
          expect_all_partitioned(*engine);
        engine->step();
      }
    auto parameters = engine->full_parameters();
    if (runtime.rank() == 0) outcome.parameters = std::move(parameters);
  });
  return outcome;
}

const FullTensor* find(const std::vector<FullTensor>& tensors, const std::string& name) {
  for (const FullTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

void expect_near(const std::vector<FullTensor>& expected, const std::vector<FullTensor>& actual) {
  for (const FullTensor& want : expected) {
    const FullTensor* got = find(actual, want.name);
    ASSERT_NE(got, nullptr) << want.name;
    if (want.values.empty()) continue;
    ASSERT_EQ(got->values.size(), want.values.size()) << want.name;
    for (std::size_t i = 0; i < want.values.size(); ++i)
      EXPECT_NEAR(got->values[i], want.values[i], 2e-6) << want.name << "[" << i << "]";
  }
}

// Also that something was there to be equal.
void expect_as_stage0(const MakeModel& make_model, Training run) {
  const ZeroConfig config = run.config;
  run.config = {.stage = 0, .gradient_accumulation_steps = config.gradient_accumulation_steps};
  const Zero3Outcome plain = train(make_model, run);
  double sum = 0.0;
  for (const FullTensor& gradient : plain.gradients)
    for (const double value : gradient.values) sum += std::abs(value);
  EXPECT_GT(sum, 1e-3);
  run.config = config;
  const Zero3Outcome outcome = train(make_model, run);
  expect_near(plain.gradients, outcome.gradients);
  expect_near(plain.parameters, outcome.parameters);
}

std::vector<std::pair<const char*, MakeModel>> models() {
  using enum CheckpointKind;
  return {
      {"mlp", [] { return std::make_shared<MlpModel>(); }},
      {"tied and unused", [] { return std::make_shared<TiedModel>(); }},
      {"reentrant",
       [] { return std::make_shared<BlocksModel>(BlocksModel::checkpointed<reentrant>); }},
      {"non-reentrant",
       [] { return std::make_shared<BlocksModel>(BlocksModel::checkpointed<non_reentrant>); }},
      {"frozen reentrant",
       [] { return std::make_shared<BlocksModel>(BlocksModel::checkpointed<reentrant>, true); }},
      {"frozen non-reentrant",
       [] {
         return std::make_shared<BlocksModel>(BlocksModel::checkpointed<non_reentrant>, true);
       }},
      {"borrowed", [] { return std::make_shared<BorrowingModel>(); }}};
}

TEST(Zero3, Trains_as_stage_0) {
  for (const auto& [name, make_model] : models())
    for (const int world_size : {1, 2, 3})
      for (const bool has_overlap : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name << " " << world_size << " " << has_overlap);
        Training run{.config = stage3_config(), .world_size = world_size};
        run.config.overlap_comm = has_overlap;
        expect_as_stage0(make_model, run);
      }
}

TEST(Zero3, Accumulates_over_micro_batches) {
  for (const bool has_reduce_scatter : {true, false}) {
    Training run{.config = stage3_config(), .world_size = 2};
    run.config.gradient_accumulation_steps = 3;
    run.config.reduce_scatter = has_reduce_scatter;
    expect_as_stage0([] { return std::make_shared<MlpModel>(); }, run);
  }
}

TEST(Zero3, Has_one_shard_of_each_sub_group) {
  Training run{.config = stage3_config(), .world_size = 2};
  run.config.sub_group_size = 20;
  run.config.memory_efficient_linear = false;
  expect_as_stage0([] { return std::make_shared<MlpModel>(); }, run);
}

TEST(Zero3, Keeps_persistent_parameters_between_steps) {
  Training run{.config = stage3_config(), .world_size = 2};
  run.config.stage3_param_persistence_threshold = 10;
  expect_as_stage0([] { return std::make_shared<MlpModel>(); }, run);
}

TEST(Zero3, Offloads_gradients_and_optimizer) {
  Training run{.config = stage3_config(), .world_size = 2};
  run.config.offload_optimizer = OffloadDevice::cpu;
  run.config.gradient_accumulation_steps = 2;
  expect_as_stage0([] { return std::make_shared<MlpModel>(); }, run);
}

TEST(Zero3, Takes_a_backward_by_hand) {
  Training run{.config = stage3_config(), .world_size = 2};
  const auto by_hand = [](Engine& engine, const Tensor& x) {
    const Tensor loss = engine.forward(x);
    if (engine.config().stage == 0) {
      engine.backward(loss);
    } else {
      engine.autograd().backward(loss);
    }
  };
  run.micro_batch = by_hand;
  for (const auto& [name, make_model] : models()) {
    SCOPED_TRACE(name);
    expect_as_stage0(make_model, run);
  }
}

// What a graph keeps and when it goes: retained_graphs_test.cpp.
TEST(Zero3, Goes_back_twice_over_a_retained_graph) {
  for (const bool is_by_hand : {false, true}) {
    Training run{.config = stage3_config(), .world_size = 2};
    run.micro_batch = [is_by_hand](Engine& engine, const Tensor& x) {
      const TensorList losses = engine.forward(TensorList{x});
      if (engine.config().stage == 0)
        return (void)engine.backward(add(engine.autograd(), losses[0], losses[1]));
      if (is_by_hand) {
        engine.autograd().backward(losses[0], {.retain_graph = true});
        engine.autograd().backward(losses[1]);
      } else {
        engine.backward(losses[0], {.retain_graph = true});
        engine.backward(losses[1]);
      }
      expect_all_partitioned(engine);
    };
    expect_as_stage0([] { return std::make_shared<TwoLossModel>(); }, run);
  }
}

TEST(Zero3, Adds_backwards_whatever_the_order_of_forwards) {
  Training run{.config = stage3_config(), .world_size = 2};
  run.micro_batch = [](Engine& engine, const Tensor& x) {
    const Tensor a = engine.forward(x);
    const Tensor b = engine.forward(mul(engine.autograd(), x, 0.5));
    if (engine.config().stage == 0) return (void)engine.backward(add(engine.autograd(), a, b));
    engine.backward(a);
    engine.backward(b);
  };
  expect_as_stage0([] { return std::make_shared<MlpModel>(); }, run);
}

TEST(Zero3, Fetches_a_leaf_module_at_once) {
  Training run{.config = stage3_config(), .world_size = 2};
  run.prepare = [](Engine& engine) {
    engine.set_leaf_module(*dynamic_cast<BlocksModel&>(engine.module()).b1);
  };
  for (const bool is_twice : {false, true}) {
    run.micro_batch = [is_twice](Engine& engine, const Tensor& x) {
      const Tensor loss = engine.forward(x);
      if (is_twice && engine.config().stage == 0)
        return (void)engine.backward(mul(engine.autograd(), loss, 2.0));
      if (is_twice) engine.backward(loss, {.retain_graph = true});
      engine.backward(loss);
    };
    expect_as_stage0([] { return std::make_shared<BlocksModel>(BlocksModel::plainly); }, run);
  }
}

// Its hook runs when the output's gradient comes, before anything is gathered
// (gradient_of_wrong_size).
TEST(Zero3, Refuses_a_leaf_module_whose_input_needs_no_gradient) {
  HostWorld world({.world_size = 2});
  world.run([](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    auto engine = Engine::initialize(autograd, model, stage3_config(), runtime).value();
    engine->set_leaf_module(model);
    const Tensor loss = engine->forward(filled({2, 4}, 0.1));
    try {
      engine->backward(loss);
      FAIL();
    } catch (const EngineError& error) {
      EXPECT_EQ(error.id(), EngineErrorId::gradient_of_wrong_size);
    }
    expect_all_partitioned(*engine);
  });
}

TEST(Zero3, Gives_back_what_a_forward_that_fails_had) {
  HostWorld world({.world_size = 2});
  world.run([](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    auto engine = Engine::initialize(autograd, model, stage3_config(), runtime).value();
    for (int i = 0; i < 3; ++i) {
      EXPECT_THROW(engine->forward(filled({2, 5}, 0.1)), std::exception);
      expect_all_partitioned(*engine);
      engine->backward(engine->forward(filled({2, 4}, 0.1)));
      EXPECT_TRUE(engine->step().is_applied);
    }
  });
}

TEST(Zero3, Starts_again_after_an_exception) {
  Training run{.config = stage3_config(), .world_size = 2};
  run.micro_batch = [](Engine& engine, const Tensor& x) {
    Autograd& ag = engine.autograd();
    const Tensor input = filled({2, 4}, 0.3);
    input.set_requires_grad(true);
    if (engine.config().stage == 3) {
      const Tensor doomed = engine.forward(input);
      input.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("injected"); });
      EXPECT_THROW(engine.backward(doomed), std::runtime_error);
      expect_all_partitioned(engine);
      EXPECT_THROW(ag.backward(engine.forward(input)), std::runtime_error);
      expect_all_partitioned(engine);
    }
    engine.backward(engine.forward(x));
  };
  expect_as_stage0([] { return std::make_shared<MlpModel>(); }, run);
}

// --- precisions and other ways through a window ------------------------------------------------

// Stage 2 communicates the same numbers in another layout. No tied weights: with autocast the
// plain linear adds up their gradients before it casts them, ours after.
void expect_as_stage2(Training run, double tolerance) {
  const auto make_model = [] { return std::make_shared<MlpModel>(); };
  const Zero3Outcome three = train(make_model, run);
  run.config.stage = 2;
  const Zero3Outcome two = train(make_model, run);
  for (const FullTensor& want : two.gradients) {
    const FullTensor* got = find(three.gradients, want.name);
    ASSERT_NE(got, nullptr);
    for (std::size_t i = 0; i < want.values.size(); ++i)
      EXPECT_NEAR(got->values[i], want.values[i], tolerance) << want.name << "[" << i << "]";
  }
  for (const FullTensor& want : two.parameters) {
    const FullTensor* got = find(three.parameters, want.name);
    ASSERT_NE(got, nullptr);
    for (std::size_t i = 0; i < want.values.size(); ++i)
      EXPECT_NEAR(got->values[i], want.values[i], tolerance) << want.name << "[" << i << "]";
  }
}

TEST(Zero3, Trains_in_every_precision_as_stage_2) {
  for (const char* precision : {"bf16", "fp16", "fp16 dynamic", "autocast"})
    for (const int world_size : {1, 2, 4}) {
      SCOPED_TRACE(::testing::Message() << precision << " " << world_size);
      Training run{.config = stage3_config(), .world_size = world_size};
      const std::string_view kind = precision;
      run.config.bf16.enabled = kind == "bf16";
      run.config.fp16.enabled = kind.starts_with("fp16");
      run.config.fp16.loss_scale = kind == "fp16" ? 8.0 : 0.0;
      run.config.fp16.initial_scale_power = 4;
      run.config.torch_autocast.enabled = kind == "autocast";
      const DType dtype = run.config.model_dtype();
      run.micro_batch = [dtype](Engine& engine, const Tensor& x) {
        engine.backward(engine.forward(to(engine.autograd(), x, dtype)));
      };
      expect_as_stage2(run, 1e-6);
    }
}

TEST(Zero3, Skips_a_step_that_overflows_on_one_rank) {
  HostWorld world({.world_size = 2});
  world.run([](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    ZeroConfig config = stage3_config();
    config.fp16.enabled = true;
    config.fp16.initial_scale_power = 4;
    config.fp16.hysteresis = 1;
    auto engine = Engine::initialize(ag, model, config, runtime).value();
    const auto before = engine->full_parameters();
    const double factor = runtime.rank() == 1 ? 1e9 : 1.0;
    const Tensor loss = engine->forward(to(ag, filled({2, 4}, 0.1), DType::float16));
    engine->backward(mul(ag, to(ag, loss, DType::float32), factor));
    EXPECT_TRUE(engine->step().has_overflow);
    const auto after = engine->full_parameters();
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].values, after[i].values);
    EXPECT_EQ(engine->loss_scale(), 8.0);
    EXPECT_EQ(engine->skipped_steps(), 1);
  });
}

TEST(Zero3, Coalesces_and_lets_the_caller_manage_the_window) {
  Training run{.config = stage3_config(), .world_size = 2};
  run.micro_batch = [](Engine& engine, const Tensor& x) {
    const auto both = [&] {
      engine.backward(engine.forward(x));
      engine.backward(engine.forward(mul(engine.autograd(), x, 0.5)));
    };
    if (engine.config().stage == 3) return engine.coalesce_grad_reduction(both);
    const Tensor a = engine.forward(x);
    engine.backward(add(engine.autograd(), a, engine.forward(mul(engine.autograd(), x, 0.5))));
  };
  expect_as_stage0([] { return std::make_shared<TiedModel>(); }, run);
}

// --- function transforms ---------------------------------------------------------------------

using Transformed = std::function<TensorList(Autograd& ag, const func::UnaryFunction& f)>;

std::vector<std::pair<const char*, Transformed>> transforms() {
  const Tensor x = filled({4}, 0.2);
  const Tensor xs = filled({3, 4}, 0.2);
  return {
      {"grad", [x](Autograd& ag,
                   const func::UnaryFunction& f) { return TensorList{func::grad(ag, f)(x)}; }},
      {"grad_and_value",
       [x](Autograd& ag, const func::UnaryFunction& f) {
         auto both = func::grad_and_value(ag, func::lifted(f), {x});
         return TensorList{both.grads.at(0), both.value};
       }},
      {"jacrev", [x](Autograd& ag,
                     const func::UnaryFunction& f) { return TensorList{func::jacrev(ag, f)(x)}; }},
      {"vmap", [xs](Autograd& ag,
                    const func::UnaryFunction& f) { return TensorList{func::vmap(ag, f)(xs)}; }},
      {"vmap(grad)", [xs](Autograd& ag, const func::UnaryFunction& f) {
         return TensorList{func::vmap(ag, func::grad(ag, f))(xs)};
       }}};
}

// With and without a leaf module.
template <class Model>
void expect_function(const Transformed& transformed, const std::function<Model()>& make_model,
                     const std::function<void(Engine& engine)>& prepare) {
  for (const int world_size : {1, 2}) {
    SCOPED_TRACE(world_size);
    HostWorld world({.world_size = world_size});
    world.run([&](Runtime& runtime) {
      const CpuOps ops;
      Autograd ag(ops);
      const Model bare = make_model();
      const TensorList expected = transformed(ag, [&](const Tensor& x) { return bare(ag, x); });
      Model model = make_model();
      auto engine = Engine::initialize(ag, model, stage3_config(), runtime).value();
      prepare(*engine);
      engine->backward(engine->forward(filled({2, 4}, 0.1)));
      const BackwardState before = engine->hook_state();
      const auto gradients = engine->full_gradients();
      const std::int64_t micro_steps = engine->micro_steps();
      const TensorList actual =
          transformed(ag, [&](const Tensor& x) { return engine->forward(x); });
      ASSERT_EQ(expected.size(), actual.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(expected[i].values(), actual[i].values());
        EXPECT_NE(expected[i].values().front(), 0.0);
      }
      expect_all_partitioned(*engine);
      EXPECT_EQ(engine->hook_state(), before);
      EXPECT_EQ(engine->micro_steps(), micro_steps);
      const auto after = engine->full_gradients();
      for (std::size_t i = 0; i < after.size(); ++i)
        EXPECT_EQ(after[i].values, gradients[i].values);
      engine->step();
      engine->backward(engine->forward(filled({2, 4}, 0.1)));
      expect_all_partitioned(*engine);
    });
  }
}

TEST(Zero3, Is_a_function_to_transforms) {
  for (const auto& [name, transformed] : transforms()) {
    SCOPED_TRACE(name);
    expect_function<MlpModel>(
        transformed, [] { return MlpModel(); }, [](Engine&) {});
  }
}

TEST(Zero3, Is_a_function_to_transforms_with_a_leaf_module) {
  for (const auto& [name, transformed] : transforms()) {
    SCOPED_TRACE(name);
    expect_function<BlocksModel>(
        transformed, [] { return BlocksModel(BlocksModel::plainly); },
        [](Engine& engine) {
          engine.set_leaf_module(*dynamic_cast<BlocksModel&>(engine.module()).b1);
        });
  }
}

}  // namespace
}  // namespace zeroproof
