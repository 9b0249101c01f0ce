// Programs that leave the active depth above zero (hazards N1 to N3), on the real engine: the
// releases from 0.19.6 on run no manual epilogue then, those before and `exact` do.
#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/journal.h"
#include "model/cpu_ops.h"
#include "tests/engine/epilogue_log.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// Two factors; a backward reaches p2 first, and fails after it while `is_failing`.
class Factors final : public nn::Module {
 public:
  Factors() {
    for (const char* name : {"p1", "p2"}) {
      Tensor factor = Tensor::of({1.5, 0.5}, {2}, DType::float32);
      factor.set_requires_grad(true);
      factors_.push_back(register_parameter(name, factor));
    }
  }
  bool is_failing = false;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor inner = mul(ag, inputs.at(0), factors_[0]);
    inner.register_hook([this](const Tensor&) {
      if (is_failing) throw std::runtime_error("in the middle of a backward");
      return Tensor();
    });
    return {sum(ag, mul(ag, inner, factors_[1]))};
  }

 private:
  TensorList factors_;
};

enum class Program { manual_sum, managed_sum_then_manual, aborted_then_manual };

struct HookJob {
  Autograd& ag;
  Factors& model;
  Engine& engine;
  Tensor input;

  Tensor loss() { return engine.forward(input); }
  Tensor sum_of_two() {
    const Tensor first = loss();
    return add(ag, first, loss());
  }
  void run(Program program) {
    switch (program) {
      case Program::manual_sum:
        return ag.backward(sum_of_two());
      case Program::managed_sum_then_manual:
        engine.backward(sum_of_two());
        engine.step();
        return ag.backward(loss());
      case Program::aborted_then_manual:
        model.is_failing = true;
        EXPECT_THROW(ag.backward(loss()), std::runtime_error);
        model.is_failing = false;
        engine.zero_grad();
        return ag.backward(loss());
    }
  }
};

std::string run(Program program, const std::string& policy, int stage) {
  NameTable names;
  EpilogueLog log(names);
  Journal journal(log, names, 0);
  HostWorld world({.world_size = 1, .observers = {{.journal = &journal}}});
  const CpuOps ops;
  Autograd ag(ops);
  Factors model;
  auto engine =
      Engine::initialize(ag, model, {.stage = stage}, world.runtime(0), {.policy = policy}).value();
  Tensor input = Tensor::of({1.0, 2.0}, {2}, DType::float32);
  input.set_requires_grad(true);
  HookJob{ag, model, *engine, input}.run(program);
  return log.epilogues();
}

struct Row {
  Program program;
  const char* policy;
  const char* epilogues;
};

class ActiveDepth : public ::testing::TestWithParam<Row> {};

TEST_P(ActiveDepth, Above_one_takes_the_manual_epilogue_since_0_19_6) {
  for (const int stage : {1, 2, 3})
    EXPECT_EQ(run(GetParam().program, GetParam().policy, stage), GetParam().epilogues) << stage;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ActiveDepth,
    ::testing::Values(Row{Program::manual_sum, "deepspeed-0.19.5", "a2"},
                      Row{Program::manual_sum, "deepspeed-0.19.6", "none"},
                      Row{Program::manual_sum, "exact", "a2"},
                      Row{Program::managed_sum_then_manual, "deepspeed-0.19.5", "a2,a4"},
                      Row{Program::managed_sum_then_manual, "deepspeed-0.19.6", "a2"},
                      Row{Program::managed_sum_then_manual, "exact", "a2,a4"},
                      Row{Program::aborted_then_manual, "deepspeed-0.19.5", "a3"},
                      Row{Program::aborted_then_manual, "deepspeed-0.19.6", "none"},
                      Row{Program::aborted_then_manual, "exact", "a3"}));

}  // namespace
}  // namespace zeroproof
