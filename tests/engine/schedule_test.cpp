// Learning rates step by step, as DeepSpeed's own schedulers give them
// (tests/data/schedules/ask_deepspeed.py): equal to the last bit.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/schedule/learning_rates.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "tests/read_file.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

Json rows(const char* name) {
  static const Json kAnswers =
      Json::parse(read_file(ZP_SOURCE_DIR "/tests/data/schedules/deepspeed.json"));
  return kAnswers.at(name);
}

ZeroConfig config_of(const Json& row) {
  Json document = {{"scheduler", row.at("scheduler")}};
  if (row.contains("optimizer")) document["optimizer"] = row["optimizer"];
  const auto parsed = parse_ds_config(document.dump(), "row");
  EXPECT_TRUE(parsed) << parsed.error().text;
  return parsed->config;
}

// A list a group: the learning rate, then the betas, where it has them.
Json told(const std::vector<GroupRates>& groups) {
  Json all = Json::array();
  for (const GroupRates& group : groups) {
    Json one = {group.learning_rate};
    if (group.betas) one.insert(one.end(), {group.betas->beta1, group.betas->beta2});
    all.push_back(one);
  }
  return all;
}

// In a process that goes on from a checkpoint.
LearningRates resumed(const LearningRates& from, const ZeroConfig& config) {
  TrainingState state;
  state.groups.resize(from.groups().size());
  from.save(state);
  LearningRates rates = *LearningRates::make(config, from.groups().size());
  EXPECT_TRUE(rates.check(state, "checkpoint"));
  rates.restore(state, true);
  return rates;
}

TEST(Schedule, Gives_the_learning_rates_and_betas_of_DeepSpeed_bit_for_bit) {
  const Json all = rows("schedules");
  EXPECT_LE(20U, all.size());
  for (const Json& row : all) {
    SCOPED_TRACE(row.at("scheduler").dump());
    const ZeroConfig config = config_of(row);
    EXPECT_TRUE(validate(config));
    auto rates = LearningRates::make(config, row.at("groups").get<std::size_t>());
    ASSERT_TRUE(rates) << rates.error().text;
    const Json& expected = row.at("rates");
    EXPECT_EQ(expected[0], told(rates->groups()));
    for (std::size_t step = 1; step < expected.size(); ++step) {
      if (row["resumes_at"] == step - 1) rates = resumed(*rates, config);
      rates->step();
      EXPECT_EQ(expected[step], told(rates->groups())) << "after step " << step;
    }
    TrainingState state;
    rates->save(state);
    EXPECT_EQ(row["state"]["last_batch_iteration"], state.scheduler->last_batch_iteration);
  }
}

// Steps that DeepSpeed's engine skipped leave its scheduler where it is.
TEST(Schedule, Moves_in_an_engine_when_DeepSpeeds_engine_moves_it) {
  std::size_t skipped_in_all = 0;
  for (const Json& row : rows("engines")) {
    SCOPED_TRACE(row.dump().substr(0, 160));
    ZeroConfig config = config_of(row);
    config.stage = row.at("stage");
    config.fp16 = {.enabled = true, .loss_scale = 8.0};
    HostWorld world({});
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    auto engine = Engine::initialize(autograd, model, config, world.runtime(0)).value();
    const Tensor x = ops.cast(filled({2, 4}, 0.1), DType::float16);
    EXPECT_EQ(row["rates"][0][0][0], engine->learning_rates().at(0));
    for (std::size_t step = 0; step < row.at("skipped").size(); ++step) {
      const bool is_skipped = row["skipped"][step];
      const Tensor loss = engine->forward(x);
      if (is_skipped)
        loss.register_hook(
            [](const Tensor& grad) { return Tensor::full(grad.sizes(), HUGE_VAL, grad.dtype()); });
      engine->backward(loss);
      EXPECT_EQ(is_skipped, engine->step().has_overflow);
      EXPECT_EQ(row["rates"][step + 1][0][0], engine->learning_rates().at(0)) << step;
      skipped_in_all += is_skipped ? 1 : 0;
    }
  }
  EXPECT_LT(0U, skipped_in_all);
}

TEST(Schedule, Refuses_a_list_that_does_not_fit_the_groups) {
  ZeroConfig config;
  config.scheduler = SchedulerConfig{WarmupLrOptions{.warmup_min_lr = std::vector{0.1, 0.2, 0.3}}};
  const auto rates = LearningRates::make(config, 2);
  ASSERT_FALSE(rates);
  EXPECT_EQ(rates.error().text,
            "/scheduler/params/warmup_min_lr has 3 values, and the engine 2 parameter groups; give "
            "one for each, or one number for all");
}

TEST(Schedule, Refuses_numbers_that_cannot_work) {
  const struct {
    SchedulerConfig config;
    const char* text;
  } cases[] = {
      {{WarmupCosineLrOptions{.warmup = {.warmup_num_steps = 0}}},
       "/scheduler/params/warmup_num_steps is 0; give a positive whole number"},
      {{LrRangeTestOptions{.lr_range_test_step_size = -3}},
       "/scheduler/params/lr_range_test_step_size is -3; give a positive whole number"},
      {{OneCycleOptions{.cycle_first_step_size = 0.0}},
       "/scheduler/params/cycle_first_step_size is 0; give a positive number"},
      {{OneCycleOptions{.cycle_second_step_size = -1.0}},
       "/scheduler/params/cycle_second_step_size is -1; give a number of at least 0"},
      {{OneCycleOptions{.decay_lr_rate = -0.25, .decay_step_size = 2.0}},
       "/scheduler/params/decay_lr_rate is -0.25; give a rate that does not divide by 0 in some "
       "step"},
      {{.options = WarmupLrOptions(), .last_batch_iteration = -2},
       "/scheduler/params/last_batch_iteration is -2; give a whole number of at least -1"},
  };
  for (const auto& one : cases) {
    ZeroConfig config;
    config.scheduler = one.config;
    const auto valid = validate(config);
    ASSERT_FALSE(valid) << one.text;
    EXPECT_EQ(valid.error().text, one.text);
  }
}

}  // namespace
}  // namespace zeroproof
