// The golden table of docs/spec/zero.md 1.7 with tensors: without the final-callback API the
// upstream policies count hooks, and run their epilogues too early, too often or never.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/journal.h"
#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "tests/engine/epilogue_log.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

enum class CountedProgram { plain, reentrant, pre_user, bypass, idle_leaf };

// A leaf module that no forward calls.
class Idle final : public nn::Module {
 public:
  Idle() {
    Tensor weight = Tensor::of({1.0}, {1}, DType::float32);
    weight.set_requires_grad(true);
    register_parameter("weight", weight);
  }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
};

// Four factors p1 to p4; a backward reaches p4 first.
class CountedFactors final : public nn::Module {
 public:
  explicit CountedFactors(CountedProgram program) : program_(program) {
    for (const char* name : {"p1", "p2", "p3", "p4"}) {
      Tensor factor = Tensor::of({1.5, 0.5}, {2}, DType::float32);
      factor.set_requires_grad(true);
      factors_.push_back(register_parameter(name, factor));
    }
  }
  Idle& add_idle() { return *register_module("idle", std::make_shared<Idle>()); }
  const Tensor& factor(std::size_t number) const { return factors_.at(number - 1); }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const auto first_two = [&](const TensorList& x) {
      return TensorList{mul(ag, mul(ag, x.at(0), factor(1)), factor(2))};
    };
    Tensor y = program_ == CountedProgram::reentrant
                   ? checkpoint(ag, CheckpointKind::reentrant, first_two, inputs).at(0)
                   : first_two(inputs).at(0);
    y = mul(ag, y, factor(3));
    if (program_ == CountedProgram::pre_user) run_backwards_of_the_last(ag, y);
    if (program_ != CountedProgram::pre_user && program_ != CountedProgram::bypass)
      y = mul(ag, y, factor(4));
    return {sum(ag, y)};
  }

 private:
  void run_backwards_of_the_last(Autograd& ag, const Tensor& y) const {
    for (int tile = 0; tile < 2; ++tile) ag.backward(sum(ag, mul(ag, y.detach(), factor(4))));
  }

  CountedProgram program_;
  TensorList factors_;
};

std::string run(CountedProgram program, const std::string& policy) {
  NameTable names;
  EpilogueLog log(names);
  Journal journal(log, names, 0);
  HostWorld world({.world_size = 1, .observers = {{.journal = &journal}}});
  const CpuOps ops;
  Autograd ag(ops);
  CountedFactors model(program);
  const bool has_idle = program == CountedProgram::idle_leaf;
  Idle* idle = has_idle ? &model.add_idle() : nullptr;
  EngineOptions options{.policy = policy, .has_callback_api = false};
  if (has_idle) options.quirks.add(Quirk::h25_counts_idle_leaf_modules);
  auto engine =
      Engine::initialize(ag, model, {.stage = has_idle ? 3 : 2}, world.runtime(0), options).value();
  if (idle) engine->set_leaf_module(*idle);
  Tensor x = Tensor::of({1.0, 2.0}, {2}, DType::float32);
  x.set_requires_grad(true);
  Tensor loss = engine->forward(x);
  if (program == CountedProgram::bypass) loss = add(ag, loss, sum(ag, model.factor(4)));
  ag.backward(loss);
  return fmt::format("{} n{}", log.epilogues(), log.counts());  // "a2,a3,a4 n3"
}

struct CountRow {
  CountedProgram program;
  const char* policy;
  const char* golden;
};

class CountFallback : public ::testing::TestWithParam<CountRow> {};

TEST_P(CountFallback, Reproduces_the_golden_table) {
  EXPECT_EQ(run(GetParam().program, GetParam().policy), GetParam().golden);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CountFallback,
    ::testing::Values(CountRow{CountedProgram::plain, "deepspeed-0.18.3", "a4 n1"},
                      CountRow{CountedProgram::plain, "deepspeed-0.18.5", "a4 n4"},
                      CountRow{CountedProgram::plain, "deepspeed-0.18.7", "a4 n1"},
                      CountRow{CountedProgram::plain, "deepspeed-0.19.6", "a4 n1"},
                      CountRow{CountedProgram::plain, "deepspeed-pr8245", "a4 n1"},
                      CountRow{CountedProgram::reentrant, "deepspeed-0.18.3", "a2 n2"},
                      CountRow{CountedProgram::reentrant, "deepspeed-0.18.5", "a2,a3,a4 n4"},
                      CountRow{CountedProgram::reentrant, "deepspeed-0.18.7", "a2,a3,a4 n3"},
                      CountRow{CountedProgram::reentrant, "deepspeed-0.19.6", "a2,a3,a4 n3"},
                      CountRow{CountedProgram::reentrant, "deepspeed-pr8245", "a2,a3,a4 n3"},
                      CountRow{CountedProgram::pre_user, "deepspeed-0.18.3", "a5 n3"},
                      CountRow{CountedProgram::pre_user, "deepspeed-0.18.5", "a3,a4,a5 n5"},
                      CountRow{CountedProgram::pre_user, "deepspeed-0.18.7", "a5 n2"},
                      CountRow{CountedProgram::bypass, "deepspeed-0.18.3", "a4 n1"},
                      CountRow{CountedProgram::bypass, "deepspeed-0.18.5", "a4 n4"},
                      CountRow{CountedProgram::bypass, "deepspeed-0.18.7", "none n2"},
                      CountRow{CountedProgram::bypass, "deepspeed-0.19.6", "none n2"},
                      CountRow{CountedProgram::bypass, "deepspeed-pr8245", "none n2"},
                      CountRow{CountedProgram::idle_leaf, "deepspeed-0.18.3", "none n1"},
                      CountRow{CountedProgram::idle_leaf, "deepspeed-0.18.5", "none n4"},
                      CountRow{CountedProgram::idle_leaf, "deepspeed-0.18.7", "none n1"},
                      CountRow{CountedProgram::idle_leaf, "deepspeed-0.19.6", "none n1"},
                      CountRow{CountedProgram::idle_leaf, "deepspeed-pr8245", "none n1"}));

TEST(CountFallback, Exact_refuses_instead_of_counting) {
  EXPECT_THROW(run(CountedProgram::plain, "exact"), EngineError);
}

}  // namespace
}  // namespace zeroproof
