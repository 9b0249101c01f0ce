// The recorded order of modules: its states, and what leaves it.
#include <gtest/gtest.h>

#include "engine/engine_core.h"
#include "engine/zero/stage3/stage3.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

class Zero3Trace : public ::testing::Test {
 protected:
  Zero3Trace() : ag(ops) {
    config.stage3_param_persistence_threshold = 0;
    config.stage3_prefetch_bucket_size = 40;
    core = std::make_unique<Engine::Core>(ag, model, config, world.runtime(0), EngineOptions{},
                                          LossScaler());
  }
  Zero3Optimizer& stage3() { return dynamic_cast<Zero3Optimizer&>(core->optimizer()); }
  TraceMode mode() { return stage3().coordinator().trace().mode(); }
  void iterate() { core->backward(core->forward({filled({2, 4}, 0.1)}).at(0), {}); }

  HostWorld world{{}};
  CpuOps ops;
  Autograd ag;
  MlpModel model;
  ZeroConfig config{.stage = 3};
  std::unique_ptr<Engine::Core> core;
};

TEST_F(Zero3Trace, Is_recorded_once_and_then_followed) {
  EXPECT_EQ(mode(), TraceMode::invalid);
  iterate();
  EXPECT_EQ(mode(), TraceMode::record);
  for (int i = 0; i < 3; ++i) iterate();
  EXPECT_EQ(mode(), TraceMode::complete);
  // model, l1, l2, and back: model, l2, l1
  EXPECT_EQ(stage3().coordinator().trace().modules().size(), 6U);
}

TEST_F(Zero3Trace, Is_recorded_anew_when_the_program_or_its_hooks_change) {
  iterate();
  iterate();
  EXPECT_EQ(mode(), TraceMode::complete);
  stage3().register_module_hooks();
  EXPECT_EQ(mode(), TraceMode::invalid);
  iterate();
  EXPECT_EQ(mode(), TraceMode::record);
  // A forward alone ends early, so that the next one comes where a backward is expected.
  {
    const GradMode off(ag, false);
    core->forward({filled({2, 4}, 0.1)});
  }
  EXPECT_EQ(mode(), TraceMode::complete);
  iterate();
  EXPECT_EQ(mode(), TraceMode::complete);
}

TEST_F(Zero3Trace, Leaves_nothing_behind_forwards_without_a_backward) {
  for (int i = 0; i < 4; ++i) {
    const GradMode off(ag, i % 2 == 0);
    core->forward({filled({2, 4}, 0.1)});
    if (i % 2 == 0) continue;
    for (const PartitionedParameter& parameter : stage3().gatherer().parameters())
      EXPECT_TRUE(parameter.is_partitioned());
    EXPECT_EQ(stage3().forward_stack_depth(), 0U);
  }
}

TEST_F(Zero3Trace, Refuses_what_its_state_has_no_place_for) {
  FetchTrace trace(1);
  Zero3Module module;
  const auto id = [](const std::function<void()>& body) {
    try {
      body();
    } catch (const EngineError& error) {
      return error.id();
    }
    return EngineErrorId::manual_backward_unsupported;
  };
  EXPECT_EQ(EngineErrorId::fetch_bookkeeping_out_of_order, id([&] { trace.invalidate(); }));
  EXPECT_EQ(EngineErrorId::fetch_bookkeeping_out_of_order, id([&] { trace.record(module); }));
  trace.restart();
  module.own.push_back(&stage3().gatherer().parameters().front());
  trace.record(module);
  trace.construct_order();
  trace.restart();
  EXPECT_TRUE(trace.expects(module));
  FetchTrace another(2);
  another.restart();
  another.restart();
  EXPECT_EQ(EngineErrorId::fetch_order_changed, id([&] { another.take_for(module.own); }));
  EXPECT_EQ(EngineErrorId::parameter_freed_while_used, id([&] {
              PartitionedParameter& parameter = *module.own.front();
              stage3().gatherer().gather({&parameter});
              parameter.add_use({.module = 1});
              stage3().gatherer().partition(parameter);
            }));
  module.own.front()->clear_uses();
}

}  // namespace
}  // namespace zeroproof
