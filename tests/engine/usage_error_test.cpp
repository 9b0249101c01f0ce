// Mistakes of callers: each is a UsageError that says what was given, never a failed check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/cpu_ops.h"
#include "tests/engine/support/capturing_runtime.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/hooks/hook_policy.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

struct World {
  explicit World(int stage)
      : engine(Engine::initialize(autograd, model, {.stage = stage}, runtime).value()) {}

  HostWorld host{HostWorldOptions{}};
  CapturingRuntime runtime{host.runtime(0)};
  const CpuOps ops;
  Autograd autograd{ops};
  MlpModel model;
  std::unique_ptr<Engine> engine;
};

struct Mistake {
  const char* name;
  std::function<void(World& world)> make;
  const char* text;
};

const Mistake kMistakes[] = {
    {"a gradient that is not the engine's",
     [](World& world) { world.engine->set_gradient_ready(trainable({2}, 0.0), true); },
     "the tensor is not a parameter of this engine's module"},
    {"a leaf that is not below the module",
     [](World& world) {
       BlockModel other;
       world.engine->set_leaf_module(other);
     },
     "the module is not part of this engine's model"},
    {"an external parameter of another model",
     [](World& world) {
       world.engine->register_external_parameter(world.model, trainable({2}, 0.0));
     },
     "the tensor is not a parameter of this engine's module"},
    {"a replay without a capture", [](World& world) { world.engine->replay(); },
     "replay: no iteration is captured"},
    {"the norm of no replay", [](World& world) { world.engine->replayed_grad_norm(); },
     "no iteration is captured"},
    {"a capture without a step", [](World& world) { (void)world.engine->capture([] {}); },
     "an iteration ends with its one step; this one took 0"},
    {"a replay after another learning rate",
     [](World& world) {
       const auto iteration = [&] {
         world.engine->backward(world.engine->forward(filled({2, 4}, 0.1)));
         world.engine->step();
       };
       for (int eager = 0; eager < 3; ++eager) iteration();
       ASSERT_TRUE(world.engine->capture(iteration));
       world.engine->replay();
       ASSERT_TRUE(world.engine->set_learning_rate(0.5));
       world.engine->replay();
     },
     "replay: no iteration is captured"},
    {"a world of no ranks", [](World&) { HostWorld({.world_size = 0}); }, "a world of 0 ranks"},
    {"a rank outside the world", [](World& world) { world.host.runtime(3); },
     "rank 3 of a world of 1"},
    {"degrees that do not divide",
     [](World&) { HostWorld({.world_size = 3, .degrees = {.tensor = 2}}); },
     "a tensor degree of 2 does not divide the 3 ranks"},
    {"values of another shape",
     [](World&) {
       Tensor::of({1.0, 2.0}, {3});
     },
     "2 values for the shape [3], which has 3"},
    {"the one value of several", [](World&) { (void)filled({2}, 0.0).item(); },
     "item() of a tensor with 2 elements"},
    {"a tensor of another autograd",
     [](World& world) {
       Autograd other(world.ops);
       const Tensor x = trainable({2}, 0.0);
       mul(other, mul(world.autograd, x, x), x);
     },
     "a tensor of one Autograd was used in another"},
    {"a parameter twice",
     [](World& world) { world.model.register_parameter("scale", trainable({1}, 0.0)); },
     "'scale' is there already"},
    {"a policy that is lost",
     [](World& world) {
       EngineOptions options;
       options.decorate_policy = [](std::unique_ptr<HookPolicy>) {
         return std::unique_ptr<HookPolicy>();
       };
       (void)Engine::initialize(world.autograd, world.model, {}, world.runtime, options);
     },
     "decorate_policy gave no policy back"},
    {"a step inside no_sync",
     [](World&) {
       World ddp(0);
       ddp.engine->no_sync([&] { ddp.engine->step(); });
     },
     "step() inside no_sync"},
};

TEST(UsageErrors, Say_what_a_caller_did) {
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.name);
    World world(3);
    try {
      mistake.make(world);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(mistake.text));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(UsageErrors, Of_parameter_groups_come_as_a_Result) {
  const CpuOps ops;
  HostWorld host({});
  MlpModel model;
  const Tensor own = model.named_parameters().front().tensor;
  const struct {
    std::vector<TensorList> groups;
    const char* text;
  } cases[] = {{{{own}, {trainable({2}, 0.0)}}, "parameter_groups[1][0] is no parameter"},
               {{{own}, {own}}, "is in parameter_groups 0 and 1; put it into one"}};
  for (const auto& one : cases) {
    Autograd autograd(ops);
    const auto made = Engine::initialize(autograd, model, {.stage = 2}, host.runtime(0),
                                         {.parameter_groups = one.groups});
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().text, HasSubstr(one.text));
  }
}

}  // namespace
}  // namespace zeroproof
