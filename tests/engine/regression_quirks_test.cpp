// Defects of releases after 0.19.5, each alone and as a release has them together: right under
// `exact`, wrong as docs/reference/hazards.md says with the one quirk (N4, N5, N6, N8).
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// The gradient of the weight is the input, whatever the weight is.
class ScaleModel final : public nn::Module {
 public:
  ScaleModel() {
    Tensor ones = Tensor::full({2}, 1.0, DType::float32);
    ones.set_requires_grad(true);
    weight_ = &register_parameter("weight", ones);
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {sum(ag, mul(ag, inputs.at(0), *weight_))};
  }

 private:
  Tensor* weight_;
};

ZeroConfig quirk_config(int stage) {
  ZeroConfig config{.stage = stage, .gradient_clipping = 0.0};
  config.zero_force_ds_cpu_optimizer = false;
  config.stage3_param_persistence_threshold = 0;
  config.optimizer.type = OptimizerType::sgd;
  config.optimizer.sgd.lr = 1.0;
  return config;
}

// One rank with as many engines as there are accumulation steps.
struct QuirkRank {
  QuirkRank(ZeroConfig config, const std::string& quirks, const std::vector<std::int64_t>& steps) {
    for (const std::int64_t gas : steps) {
      config.gradient_accumulation_steps = gas;
      models.push_back(std::make_unique<ScaleModel>());
      engines.push_back(Engine::initialize(autograd, *models.back(), config, world.runtime(0),
                                           {.quirks = *Quirks::parse(quirks)})
                            .value());
    }
  }

  Tensor loss(std::size_t engine, double value) {
    const DType dtype = engines[engine]->config().model_dtype();
    return engines[engine]->forward(Tensor::full({2}, value, dtype));
  }
  void train(double value) { engines[0]->backward(loss(0, value)); }
  // What the step took from the first weight.
  double step(std::size_t engine = 0) {
    const double before = engines[engine]->full_parameters().front().values.front();
    engines[engine]->step();
    return before - engines[engine]->full_parameters().front().values.front();
  }

  HostWorld world{{}};
  CpuOps ops;
  Autograd autograd{ops};
  std::vector<std::unique_ptr<ScaleModel>> models;
  std::vector<std::unique_ptr<Engine>> engines;
};

class Regression : public ::testing::TestWithParam<int> {
 protected:
  ZeroConfig config = quirk_config(GetParam());
};

// --- N4 ----------------------------------------------------------------------------------------

struct Scales {
  const char* quirks;
  std::vector<double> after_steps;
};

TEST_P(Regression, N4_never_lowers_the_scale_after_an_overflow) {
  config.torch_autocast = {.enabled = true, .dtype = DType::float16};
  const Scales cases[] = {
      {"none", {32768.0, 16384.0}},
      {"n4", {65536.0, 65536.0}},
      {"h7", {32768.0, 16384.0}},
      {"h7,n4", {65536.0, 65536.0}},
  };
  for (const Scales& one : cases) {
    SCOPED_TRACE(one.quirks);
    QuirkRank rank(config, one.quirks, {1});
    for (const double scale : one.after_steps) {
      const Tensor loss = rank.loss(0, 1.0);
      loss.register_hook([](const Tensor& grad) {
        return Tensor::full(grad.sizes(), std::numeric_limits<double>::infinity(), grad.dtype());
      });
      rank.engines[0]->backward(loss);
      EXPECT_TRUE(rank.engines[0]->step().has_overflow);
      EXPECT_EQ(rank.engines[0]->loss_scale(), scale);
    }
  }
}

// --- N5 ----------------------------------------------------------------------------------------

struct Cleared {
  const char* quirks;
  bool is_wide;
  bool clears;
  double moved;
};

TEST_P(Regression, N5_adds_to_the_partition_that_zero_grad_leaves) {
  if (config.stage == 3) GTEST_SKIP() << "of stages 1 and 2";
  const Cleared cases[] = {
      {"none", true, true, 2.0},  {"n5", true, true, 3.0},      {"n5", false, true, 2.0},
      {"h4", true, false, 2.0},   {"h4,n5", true, false, 3.0},  // the average is not built again
      {"h4,n5", true, true, 3.0}, {"h4,n5", false, false, 2.0},
  };
  config.bf16.enabled = true;
  for (const Cleared& one : cases) {
    SCOPED_TRACE(std::string(one.quirks) + (one.is_wide ? " wide" : "") +
                 (one.clears ? " cleared" : ""));
    if (one.is_wide) config.grad_accum_dtype = DType::float32;
    if (!one.is_wide) config.grad_accum_dtype.reset();
    QuirkRank rank(config, one.quirks, {1});
    rank.train(1.0);
    if (one.clears) rank.engines[0]->zero_grad();
    rank.train(2.0);
    EXPECT_EQ(rank.step(), one.moved);
  }
}

// --- N6, and H8 of 0.19.6 and later --------------------------------------------------------------

struct Shared {
  const char* quirks;
  std::vector<std::int64_t> steps;  // of the engine that runs it, and of the other
  double other;                     // what one micro-batch of 4 gives the other engine
};

TEST_P(Regression, N6_divides_a_shared_loss_by_the_steps_of_one_engine) {
  const Shared cases[] = {
      {"none", {2, 4}, 1.0}, {"n6", {2, 4}, 2.0}, {"none", {4, 1}, 4.0}, {"n6", {4, 1}, 1.0},
      {"none", {1, 2}, 2.0}, {"n6", {1, 2}, 4.0}, {"h8", {2, 4}, 1.0},   {"h8,n6", {2, 4}, 2.0},
  };
  for (const Shared& one : cases) {
    SCOPED_TRACE(one.quirks);
    QuirkRank rank(config, one.quirks, one.steps);
    for (const auto& engine : rank.engines) engine->set_gradient_accumulation_boundary(true);
    const Tensor first = rank.loss(0, 4.0);
    rank.engines[0]->backward(add(rank.autograd, first, rank.loss(1, 4.0)));
    EXPECT_EQ(rank.step(0), 4.0 / static_cast<double>(one.steps[0]));
    EXPECT_EQ(rank.step(1), one.other);
  }
}

struct Bypass {
  const char* quirks;
  bool is_manual;
  double moved;
};

// The loss mixes what the engine returned and what its module did past it.
TEST_P(Regression, H8_remains_in_manual_backwards_since_engine_backward_divides_its_loss) {
  const Bypass cases[] = {{"none", false, 2.0}, {"none", true, 2.0},   {"h8", false, 3.0},
                          {"h8", true, 3.0},    {"h8,n6", false, 2.0}, {"h8,n6", true, 3.0}};
  config.gradient_accumulation_steps = 2;
  if (config.stage == 3) GTEST_SKIP() << "a module past its engine finds its weights released";
  for (const Bypass& one : cases) {
    SCOPED_TRACE(std::string(one.quirks) + (one.is_manual ? " manual" : ""));
    QuirkRank rank(config, one.quirks, {2});
    rank.engines[0]->set_gradient_accumulation_boundary(true);
    const Tensor inside = rank.loss(0, 2.0);
    const Tensor beside = (*rank.models[0])(rank.autograd, Tensor::full({2}, 2.0, DType::float32));
    const Tensor loss = add(rank.autograd, inside, beside);
    if (one.is_manual) {
      rank.autograd.backward(loss);
    } else {
      rank.engines[0]->backward(loss);
    }
    EXPECT_EQ(rank.step(), one.moved);
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, Regression, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace zeroproof
