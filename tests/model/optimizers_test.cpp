// Updates of real PyTorch's optimizers, step by step, states too; see data/record_optimizers.py.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "model/baseline/trainer.h"
#include "model/cpu_ops.h"
#include "model/functions/activations.h"
#include "model/functions/losses.h"
#include "model/optim/adam.h"
#include "model/optim/clip.h"
#include "model/optim/sgd.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using nlohmann::json;

const json& recorded_updates() {
  static const json kData =
      json::parse(std::ifstream(ZP_SOURCE_DIR "/tests/model/data/optimizers.json"));
  return kData;
}

// float64 to 1e-12; narrower types to some roundings of a kernel's intermediate results.
double tolerance_of(DType dtype) {
  if (dtype == DType::float64) return 1e-12;
  return dtype == DType::float32 ? 4 * 0x1p-23 : 0x1p-7;
}

void expect_near(const std::vector<double>& expected, const std::vector<double>& actual,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(expected[i], actual[i], tolerance * std::max(1.0, std::abs(expected[i])))
        << what << " element " << i;
}

optim::SgdOptions sgd_options(const json& group) {
  return {.lr = group.at("lr"),
          .momentum = group.value("momentum", 0.0),
          .dampening = group.value("dampening", 0.0),
          .weight_decay = group.value("weight_decay", 0.0),
          .is_nesterov = group.value("nesterov", false),
          .is_maximizing = group.value("maximize", false)};
}

optim::AdamOptions adam_options(const json& group, bool is_adamw) {
  optim::AdamOptions options = is_adamw ? optim::adamw_options() : optim::AdamOptions();
  options.lr = group.at("lr");
  options.eps = group.value("eps", options.eps);
  options.weight_decay = group.value("weight_decay", options.weight_decay);
  options.is_maximizing = group.value("maximize", false);
  if (group.contains("betas")) {
    options.beta1 = group["betas"][0];
    options.beta2 = group["betas"][1];
  }
  return options;
}

// Two parameters a group.
template <class Options, class OptionsOf>
std::vector<optim::ParamGroup<Options>> groups_of(const json& record, const TensorList& parameters,
                                                  OptionsOf options_of) {
  std::vector<optim::ParamGroup<Options>> groups;
  for (std::size_t i = 0; i < record["groups"].size(); ++i)
    groups.push_back({{parameters[2 * i], parameters[2 * i + 1]}, options_of(record["groups"][i])});
  return groups;
}

std::unique_ptr<optim::Optimizer> optimizer_of(const Ops& ops, const json& record,
                                               const TensorList& parameters) {
  const std::string kind = record["kind"];
  if (kind == "sgd")
    return std::make_unique<optim::Sgd>(
        ops, groups_of<optim::SgdOptions>(record, parameters, sgd_options));
  const auto options_of = [&](const json& group) { return adam_options(group, kind == "adamw"); };
  return std::make_unique<optim::Adam>(
      ops, groups_of<optim::AdamOptions>(record, parameters, options_of));
}

Tensor vector_of(const json& values, DType dtype) {
  return Tensor::of(values, {static_cast<std::int64_t>(values.size())}, dtype);
}

void expect_state(const optim::Optimizer& optimizer, std::size_t parameter, const json& state,
                  double tolerance) {
  const std::vector<optim::StateEntry> entries = optimizer.state_entries(parameter);
  ASSERT_EQ(state.size(), entries.size());
  for (const optim::StateEntry& entry : entries) {
    const std::string name(entry.name);
    ASSERT_TRUE(state.contains(name)) << name;
    expect_near(state[name], entry.value.values(), tolerance, name);
  }
}

TEST(Optimizers, Update_parameters_and_states_as_PyTorch) {
  const CpuOps ops;
  for (const json& record : recorded_updates()["cases"]) {
    SCOPED_TRACE(record["kind"].dump() + record["groups"].dump() + record["dtype"].dump());
    const DType dtype = *dtype_of(record["dtype"].get<std::string>());
    TensorList parameters;
    for (const json& values : record["start"]) parameters.push_back(vector_of(values, dtype));
    const auto optimizer = optimizer_of(ops, record, parameters);
    for (const json& step : record["steps"]) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const json& grad = step["grads"][i];
        parameters[i].set_grad(grad.is_null() ? Tensor() : vector_of(grad, dtype));
      }
      optimizer->step();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const double tolerance = tolerance_of(dtype);
        expect_near(step["parameters"][i], parameters[i].values(), tolerance, "parameter");
        expect_state(*optimizer, i, step["state"][i], tolerance);
      }
    }
  }
}

TEST(Optimizers, Set_gradients_to_zeros_or_to_none) {
  const CpuOps ops;
  const Tensor p = Tensor::of({1.0, 2.0}, {2});
  const Tensor grad = Tensor::of({3.0, 4.0}, {2});
  p.set_grad(grad);
  const optim::Sgd sgd(ops, {p}, {});
  sgd.zero_grad(optim::ZeroGrad::to_zeros);
  EXPECT_TRUE(p.grad().is_same(grad));
  EXPECT_EQ((std::vector<double>{0.0, 0.0}), p.grad().values());
  sgd.zero_grad();
  EXPECT_FALSE(p.grad().is_defined());
}

TEST(Optimizers, Refuse_nesterov_momentum_without_momentum_or_with_dampening) {
  const CpuOps ops;
  EXPECT_THROW(optim::Sgd(ops, TensorList{}, {.is_nesterov = true}), AutogradError);
  EXPECT_THROW(
      optim::Sgd(ops, TensorList{}, {.momentum = 0.9, .dampening = 0.1, .is_nesterov = true}),
      AutogradError);
}

// The recorded training run: two layers, two groups of AdamW, two micro-batches a step, a loss
// scale and clipping.
struct RecordedRun {
  CpuOps ops;
  Autograd ag{ops};
  std::vector<baseline::NamedTensor> parameters;

  RecordedRun() {
    for (const char* name : {"l1.weight", "l1.bias", "l2.weight", "l2.bias"}) {
      const json& data = recorded_updates()["training"];
      parameters.push_back({name, Tensor::of(data["start"][name], data["sizes"][name])});
      parameters.back().tensor.set_requires_grad(true);
    }
  }

  const Tensor& p(std::size_t i) const { return parameters[i].tensor; }

  baseline::LossFunction micro_batch(std::size_t i) {
    return [this, i](Autograd& autograd) {
      const json& data = recorded_updates()["training"];
      const Tensor x = Tensor::of(data["inputs"][i], {5, 3});
      const Tensor hidden = gelu(autograd, linear(autograd, x, p(0), p(1)));
      const Tensor logits = linear(autograd, hidden, p(2), p(3));
      return cross_entropy(autograd, logits, {data["classes"][i]});
    };
  }
};

TEST(Baseline, Trains_as_PyTorch_does) {
  RecordedRun run;
  const std::vector<optim::ParamGroup<optim::AdamOptions>> groups = {
      {{run.p(0), run.p(2)}, {.lr = 0.02, .weight_decay = 0.1, .is_decay_decoupled = true}},
      {{run.p(1), run.p(3)}, {.lr = 0.05, .is_decay_decoupled = true}}};
  optim::Adam adamw(run.ops, groups);
  baseline::Trainer trainer(run.ag, adamw, run.parameters, {.loss_scale = 256.0, .max_norm = 0.3});
  std::size_t next = 0;
  for (const json& step : recorded_updates()["training"]["steps"]) {
    const baseline::StepRecord record =
        trainer.step({run.micro_batch(next), run.micro_batch(next + 1)});
    next += 2;
    expect_near(step["losses"], record.losses, 1e-12, "losses");
    EXPECT_NEAR(step["norm"], *record.grad_norm, 1e-12);
    EXPECT_FALSE(record.is_skipped);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string& name = record.parameters[i].name;
      expect_near(step["grads"][name], *record.gradients[i].values, 1e-12, name + ".grad");
      expect_near(step["parameters"][name], *record.parameters[i].values, 1e-12, name);
    }
    for (const baseline::StateValues& state : record.optimizer_state)
      expect_near(step["exp_avg_sq"][state.parameter], *state.entries.at(2).values, 1e-12,
                  state.parameter + ".exp_avg_sq");
  }
}

TEST(Baseline, Skips_a_step_whose_scaled_gradients_overflow) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor p = Tensor::of({2.0}, {1}, DType::float16);
  p.set_requires_grad(true);
  optim::Sgd sgd(ops, {p}, {.lr = 1.0});
  baseline::Trainer trainer(ag, sgd, {{"p", p}}, {.loss_scale = 65536.0});
  const baseline::StepRecord record =
      trainer.step({[&](Autograd& autograd) { return sum(autograd, p); }});
  EXPECT_TRUE(record.is_skipped);
  EXPECT_EQ(2.0, record.parameters[0].values->at(0));
  EXPECT_FALSE(p.grad().is_defined());
}

TEST(Baseline, Records_gradients_that_are_not_there_as_none) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor used = Tensor::of({2.0}, {1});
  const Tensor unused = Tensor::of({2.0}, {1});
  for (const Tensor& p : {used, unused}) p.set_requires_grad(true);
  optim::Sgd sgd(ops, {used, unused}, {.lr = 0.5});
  baseline::Trainer trainer(ag, sgd, {{"used", used}, {"unused", unused}});
  const baseline::StepRecord record =
      trainer.step({[&](Autograd& autograd) { return sq(autograd, used); }});
  EXPECT_EQ(4.0, record.gradients[0].values->at(0));
  EXPECT_FALSE(record.gradients[1].values.has_value());
  EXPECT_EQ(0.0, record.parameters[0].values->at(0));
  EXPECT_TRUE(record.optimizer_state[1].entries.empty());
}

}  // namespace
}  // namespace zeroproof
