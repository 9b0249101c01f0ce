// The learning rate of an engine: set by hand, moved by /scheduler, kept in checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "model/cpu_ops.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/support/capturing_runtime.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

// "l1.*" and the rest.
std::vector<TensorList> two_groups(const nn::Module& model) {
  std::vector<TensorList> groups(2);
  for (const nn::NamedParameter& named : model.named_parameters())
    groups[named.name.starts_with("l1") ? 0 : 1].push_back(named.tensor);
  return groups;
}

ZeroConfig config_of(int stage, double rate, bool is_sgd) {
  ZeroConfig config{.stage = stage};
  config.optimizer.type = is_sgd ? OptimizerType::sgd : OptimizerType::adamw;
  config.optimizer.sgd.lr = config.optimizer.adam.lr = rate;
  return config;
}

using OnStep = std::function<void(Engine& engine, int step)>;

void train(
    Engine& engine, int steps, const OnStep& before_step = [](Engine&, int) {}) {
  for (int step = 0; step < steps; ++step) {
    engine.backward(engine.forward(filled({2, 4}, 0.1 * step)));
    before_step(engine, step);
    engine.step();
  }
}

// Rank 0's parameters after three steps on two ranks.
std::vector<FullTensor> trained(const ZeroConfig& config, const OnStep& before_step) {
  std::vector<FullTensor> parameters;
  HostWorld world({.world_size = 2});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    auto engine = Engine::initialize(autograd, model, config, runtime,
                                     {.parameter_groups = two_groups(model)})
                      .value();
    train(*engine, 3, before_step);
    auto whole = engine->full_parameters();
    if (runtime.rank() == 0) parameters = std::move(whole);
  });
  return parameters;
}

class LearningRate : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(LearningRate, Set_for_all_groups_trains_as_a_configured_one) {
  const auto [stage, is_sgd] = GetParam();
  const auto expected = trained(config_of(stage, 0.05, is_sgd), [](Engine&, int) {});
  const auto moved = trained(config_of(stage, 0.5, is_sgd), [](Engine& engine, int) {
    EXPECT_TRUE(engine.set_learning_rate(0.05));
  });
  ASSERT_EQ(expected.size(), moved.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(expected[i].values, moved[i].values) << expected[i].name;
}

TEST_P(LearningRate, Set_for_one_group_leaves_the_others) {
  const auto [stage, is_sgd] = GetParam();
  ZeroConfig config = config_of(stage, 0.05, is_sgd);
  config.gradient_clipping = 0.0;
  const auto still = trained(config_of(stage, 0.0, is_sgd), [](Engine&, int) {});
  const auto all = trained(config, [](Engine&, int) {});
  const auto mixed = trained(config, [](Engine& engine, int step) {
    if (step == 0) {
      EXPECT_TRUE(engine.set_learning_rate(0, 0.0));
    }
    EXPECT_EQ(engine.learning_rates(), (std::vector{0.0, 0.05}));
  });
  std::size_t of_first_group = 0;
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    const bool is_first = mixed[i].name.starts_with("l1");
    of_first_group += is_first ? 1 : 0;
    if (is_first)
      EXPECT_EQ(still[i].values, mixed[i].values) << mixed[i].name;
    else
      EXPECT_NE(still[i].values, mixed[i].values) << mixed[i].name;
    EXPECT_NE(still[i].values, all[i].values);
  }
  EXPECT_EQ(2U, of_first_group);
}

INSTANTIATE_TEST_SUITE_P(Stages, LearningRate,
                         ::testing::Combine(::testing::Values(0, 1, 2, 3), ::testing::Bool()));

// An engine of one rank.
struct Trainer {
  explicit Trainer(const ZeroConfig& config)
      : engine(Engine::initialize(autograd, model, config, world.runtime(0)).value()) {}

  const CpuOps ops;
  HostWorld world{HostWorldOptions{}};
  Autograd autograd{ops};
  MlpModel model;
  std::unique_ptr<Engine> engine;
};

TEST(LearningRates, Refuse_a_value_that_is_no_rate_and_a_group_that_is_not_there) {
  Trainer trainer(config_of(1, 0.05, false));
  EXPECT_THAT(trainer.engine->set_learning_rate(-0.1).error().text,
              HasSubstr("the learning rate is -0.1; give a finite number"));
  EXPECT_FALSE(trainer.engine->set_learning_rate(0, std::nan("")));
  EXPECT_THAT(trainer.engine->set_learning_rate(1, 0.1).error().text,
              HasSubstr("there is no parameter group 1; the engine has 1"));
  EXPECT_EQ(trainer.engine->learning_rates(), std::vector{0.05});
}

ZeroConfig scheduled(int stage, ScheduleOptions options) {
  ZeroConfig config = config_of(stage, 0.05, false);
  config.scheduler = SchedulerConfig{std::move(options)};
  return config;
}

const WarmupLrOptions kWarmup{.warmup = {.warmup_num_steps = 6}};
const OneCycleOptions kCycle{
    .cycle_min_lr = 1e-3, .cycle_max_lr = 1e-2, .cycle_first_step_size = 3.0};

// Three steps, a checkpoint, and three more: as six at once.
TEST(LearningRates, Go_on_from_a_checkpoint_where_they_were) {
  for (const ScheduleOptions& options : {ScheduleOptions(kWarmup), ScheduleOptions(kCycle)})
    for (const int stage : {0, 1, 2, 3}) {
      MemoryFileSystem files;
      const EngineCheckpointOptions in_memory{.files = &files};
      Trainer whole(scheduled(stage, options));
      train(*whole.engine, 3);
      ASSERT_TRUE(whole.engine->save_checkpoint("folder", in_memory));
      Trainer resumed(scheduled(stage, options));
      const auto loaded = resumed.engine->load_checkpoint("folder", in_memory);
      ASSERT_TRUE(loaded) << loaded.error().text;
      for (Trainer* const trainer : {&whole, &resumed}) train(*trainer->engine, 3);
      EXPECT_EQ(whole.engine->learning_rates(), resumed.engine->learning_rates());
      const auto expected = whole.engine->full_parameters();
      const auto found = resumed.engine->full_parameters();
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(expected[i].values, found[i].values) << expected[i].name;
    }
}

TEST(LearningRates, Come_back_from_a_checkpoint_without_a_scheduler) {
  MemoryFileSystem files;
  Trainer saved(config_of(2, 0.05, false));
  ASSERT_TRUE(saved.engine->set_learning_rate(0.02));
  ASSERT_TRUE(saved.engine->save_checkpoint("folder", {.files = &files}));
  Trainer loaded(config_of(2, 0.5, false));
  ASSERT_TRUE(loaded.engine->load_checkpoint("folder", {.files = &files}));
  EXPECT_EQ(loaded.engine->learning_rates(), std::vector{0.02});
}

TEST(LearningRates, Of_a_scheduler_need_its_own_state_in_the_checkpoint) {
  MemoryFileSystem files;
  Trainer plain(config_of(1, 0.05, false));
  ASSERT_TRUE(plain.engine->save_checkpoint("plain", {.files = &files}));
  Trainer cycled(scheduled(1, kCycle));
  train(*cycled.engine, 2);
  ASSERT_TRUE(cycled.engine->save_checkpoint("cycled", {.files = &files}));
  Trainer warming(scheduled(1, kWarmup));
  const auto missing = warming.engine->load_checkpoint("plain", {.files = &files});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text,
              HasSubstr("plain: has no scheduler state, and this engine has /scheduler WarmupLR"));
  const auto other = warming.engine->load_checkpoint("cycled", {.files = &files});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().text, HasSubstr("cycled: has the state of scheduler 'OneCycle'"));
  EXPECT_EQ(warming.engine->learning_rates(), std::vector{0.0});
  const auto asked =
      warming.engine->load_checkpoint("cycled", {.files = &files, .restores_scheduler = false});
  EXPECT_TRUE(asked);
  EXPECT_EQ(warming.engine->learning_rates(), cycled.engine->learning_rates());
  train(*warming.engine, 2);  // from its own beginning
  EXPECT_DOUBLE_EQ(warming.engine->learning_rates().at(0), 0.05 * std::log(2.0) / std::log(6.0));
}

TEST(LearningRates, Are_those_of_the_capture_in_every_replay) {
  HostWorld world({});
  CapturingRuntime runtime(world.runtime(0));
  const CpuOps ops;
  Autograd autograd(ops);
  MlpModel model;
  ZeroConfig config = scheduled(2, kWarmup);
  auto engine = Engine::initialize(autograd, model, config, runtime).value();
  const auto captured = engine->capture([] {});
  ASSERT_FALSE(captured);
  EXPECT_THAT(captured.error().text, HasSubstr("/scheduler moves the learning rate"));
}

}  // namespace
}  // namespace zeroproof
