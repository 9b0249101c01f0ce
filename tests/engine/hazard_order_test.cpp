// Hazards of order and bookkeeping, each alone: right under `exact`, wrong as
// docs/reference/hazards.md says with the one quirk (H11, H17, H19, H20, H23); what one fallback
// owns is not another's to release.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "engine/engine_core.h"
#include "engine/journal.h"
#include "engine/zero/ipg_bucket.h"
#include "engine/zero/stage3/stage3.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/one_quirk.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

Zero3Optimizer& stage3_of(Engine::Core& core) {
  return dynamic_cast<Zero3Optimizer&>(core.optimizer());
}

// --- H20, H23: callbacks -----------------------------------------------------------------------

class CallbackLog final : public EventSink {
 public:
  void on_event(const HookEvent& event) override {
    if (event.kind == EventKind::cb_queue) ++queued;
    if (event.kind == EventKind::opt_step) ++steps;
  }
  int queued = 0;
  int steps = 0;
};

// Callbacks of one manual backward in whose middle the same engine evaluates something.
int callbacks_around_evaluation(Quirks quirks) {
  NameTable names;
  CallbackLog log;
  Journal journal(log, names, 0);
  HostWorld world({.observers = {{.journal = &journal}}});
  const CpuOps ops;
  Autograd ag(ops);
  MlpModel model;
  auto engine =
      Engine::initialize(ag, model, {.stage = 2}, world.runtime(0), {.quirks = quirks}).value();
  model.named_parameters().back().tensor.register_hook([&](const Tensor&) {
    const GradMode off(ag, false);
    engine->forward(filled({2, 4}, 0.3));
    return Tensor();
  });
  ag.backward(engine->forward(filled({2, 4}, 0.1)));
  EXPECT_EQ(engine->hook_state().active_depth, 0) << "benign: one epilogue all the same";
  return log.queued;
}

TEST(H20, Any_forward_makes_a_running_backward_forget_its_callback) {
  EXPECT_EQ(callbacks_around_evaluation({}), 1);
  EXPECT_EQ(callbacks_around_evaluation(only(Quirk::h20_any_forward_resets_step)), 2);
}

struct TwoBackwards {
  double gradient = 0.0;  // of both, summed over all elements
  int depth = 0;
};

TwoBackwards over_one_forward(int stage, const EngineOptions& options, bool is_managed) {
  HostWorld world({});
  const CpuOps ops;
  Autograd ag(ops);
  MlpModel model;
  auto engine = Engine::initialize(ag, model, {.stage = stage}, world.runtime(0), options).value();
  const Tensor loss = engine->forward(filled({2, 4}, 0.1));
  for (const bool is_first : {true, false}) {
    if (is_managed) {
      engine->backward(loss, {.retain_graph = is_first});
    } else {
      ag.backward(loss, {.retain_graph = is_first});
    }
  }
  TwoBackwards result{.depth = static_cast<int>(engine->hook_state().active_depth)};
  for (const FullTensor& gradient : engine->full_gradients())
    for (const double value : gradient.values) result.gradient += std::abs(value);
  EXPECT_NO_THROW(engine->step());
  return result;
}

class RetainedGraphHazard : public ::testing::TestWithParam<int> {};

TEST_P(RetainedGraphHazard, H23_loses_the_second_manual_backward) {
  const EngineOptions exact;
  const EngineOptions quirk{.quirks = only(Quirk::h23_stale_callback_flag_retained)};
  const EngineOptions x2{.policy = "x2"};
  const TwoBackwards right = over_one_forward(GetParam(), exact, false);
  EXPECT_EQ(right.depth, 0);
  for (const EngineOptions& options : {quirk, x2}) {
    const TwoBackwards wrong = over_one_forward(GetParam(), options, false);
    EXPECT_NEAR(wrong.gradient, right.gradient / 2, 1e-6) << options.policy;
    EXPECT_EQ(wrong.depth, 1) << options.policy;
    // engine.backward brings its own epilogue.
    EXPECT_NEAR(over_one_forward(GetParam(), options, true).gradient, right.gradient, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, RetainedGraphHazard, ::testing::Values(2, 3));

// --- H11: the module stack ---------------------------------------------------------------------

class ThrowingLayer final : public nn::Module {
 public:
  bool throws = false;

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override {
    if (throws) throw std::runtime_error("in the middle of a forward");
    return inputs;
  }
};

class ThrowingModel final : public nn::Module {
 public:
  ThrowingModel() {
    linear_ = register_module("linear", linear_layer(4, 3));
    layer = register_module("layer", std::make_shared<ThrowingLayer>());
  }
  std::shared_ptr<ThrowingLayer> layer;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean_square(ag, (*layer)(ag, (*linear_)(ag, inputs.at(0))))};
  }

 private:
  std::shared_ptr<nn::Linear> linear_;
};

std::size_t stack_after_exception(Quirks quirks) {
  HostWorld world({});
  const CpuOps ops;
  Autograd ag(ops);
  ThrowingModel model;
  const ZeroConfig config{.stage = 3, .stage3_param_persistence_threshold = 0};
  Engine::Core core(ag, model, config, world.runtime(0), {.quirks = quirks}, LossScaler());
  model.layer->throws = true;
  EXPECT_THROW(core.forward({filled({2, 4}, 0.1)}), std::runtime_error);
  model.layer->throws = false;
  core.backward(core.forward({filled({2, 4}, 0.1)}).at(0), {});
  for (const PartitionedParameter& parameter : stage3_of(core).gatherer().parameters())
    EXPECT_TRUE(parameter.is_partitioned()) << "that much is not the stack's";
  return stage3_of(core).forward_stack_depth();
}

TEST(H11, An_exception_leaves_its_modules_on_the_stack_and_nothing_else) {
  EXPECT_EQ(stack_after_exception({}), 0U);
  EXPECT_EQ(stack_after_exception(only(Quirk::h11_module_stack_leaks)), 2U);  // root and layer
}

// --- H17: the release memo ---------------------------------------------------------------------

// Runs `a` and then `b`, or `a` twice and then `b`; between the two calls of `a` it looks whether
// the weight is whole.
class RepeatingModel final : public nn::Module {
 public:
  RepeatingModel() {
    a_ = register_module("a", linear_layer(4, 4));
    b_ = register_module("b", linear_layer(4, 2));
  }
  bool repeats = false;
  mutable bool was_whole = false;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    Tensor h = (*a_)(ag, inputs.at(0));
    was_whole = a_->weight.numel() > 0;
    if (repeats) h = (*a_)(ag, h);
    return {mean_square(ag, (*b_)(ag, h))};
  }

 private:
  std::shared_ptr<nn::Linear> a_, b_;
};

class H17 : public ::testing::Test {
 protected:
  struct Seen {
    bool is_resident_after_first_pass = false;
    bool was_kept_for_reuse = false;  // by the order recorded last
  };

  static Seen run(Quirks quirks, std::int64_t persistence_threshold) {
    HostWorld world({});
    const CpuOps ops;
    Autograd ag(ops);
    RepeatingModel model;
    ZeroConfig config{.stage = 3};
    config.stage3_param_persistence_threshold = persistence_threshold;
    config.stage3_prefetch_bucket_size = 0;
    config.stage3_max_reuse_distance = 1;  // the next module alone
    Engine::Core core(ag, model, config, world.runtime(0), {.quirks = quirks}, LossScaler());
    const auto iterate = [&] { core.backward(core.forward({filled({2, 4}, 0.1)}).at(0), {}); };
    Seen seen;
    iterate();
    seen.is_resident_after_first_pass = true;
    for (const PartitionedParameter& parameter : stage3_of(core).gatherer().parameters())
      if (parameter.is_persistent() && !parameter.is_available())
        seen.is_resident_after_first_pass = false;
    iterate();
    iterate();  // follows the first order, and remembers what it released
    model.repeats = true;
    for (int i = 0; i < 4; ++i) iterate();  // leaves it, records another, follows that
    EXPECT_EQ(stage3_of(core).coordinator().trace().mode(), TraceMode::complete);
    seen.was_kept_for_reuse = model.was_whole;
    return seen;
  }
};

TEST_F(H17, Persistent_parameters_are_released_by_the_first_pass) {
  EXPECT_TRUE(run({}, 1000).is_resident_after_first_pass);
  EXPECT_FALSE(run(only(Quirk::h17_release_memo_forever), 1000).is_resident_after_first_pass);
}

TEST_F(H17, What_an_earlier_order_released_is_released_in_the_next_one_too) {
  EXPECT_TRUE(run({}, 0).was_kept_for_reuse);
  EXPECT_FALSE(run(only(Quirk::h17_release_memo_forever), 0).was_kept_for_reuse);
}

// --- H19: two producers of one bucket ----------------------------------------------------------

// Which streams waited for which.
class WaitLog final : public AccessObserver {
 public:
  void on_access(const Access&) override {}
  void on_record(StreamId stream, StreamEvent event) override { owners_[event] = stream; }
  void on_wait(StreamId stream, StreamEvent event) override {
    waits.insert({stream, owners_[event]});
  }
  void on_host_wait(StreamEvent) override {}
  void on_record_use(StreamId, const TensorImpl&) override {}
  void on_free(const Storage&) override {}

  std::set<std::pair<StreamId, StreamId>> waits;

 private:
  std::map<StreamEvent, StreamId> owners_;
};

// Fills both buffers of a bucket from two streams, then the first one again: which of the
// producers waited for the reduction before they wrote there.
std::set<StreamIndex> producers_that_waited(Quirks quirks) {
  constexpr std::array<StreamIndex, 2> kProducers = {1, 2};
  WaitLog log;
  const Device device = Device::cuda(0);
  HostWorld world({.device = device, .observers = {{.accesses = &log}}});
  Runtime& runtime = world.runtime(0);
  const CpuOps ops;
  Autograd ag(ops);
  MlpModel model;
  const ZeroConfig config{.stage = 2, .overlap_comm = true};
  Engine::Core core(ag, model, config, runtime, {.quirks = quirks}, LossScaler());
  IpgBucket bucket(core.context(), DType::float32, 100);
  bucket.set_up();
  const auto fill = [&] {
    for (const StreamIndex producer : kProducers) {
      ag.set_current_stream(device, producer);
      ZeroParameter& parameter = core.context().parameters[static_cast<std::size_t>(producer)];
      bucket.append(parameter, Tensor::full(parameter.sizes, 1.0, DType::float32));
    }
  };
  for (int flush = 0; flush < 2; ++flush) {
    fill();
    bucket.order_before_reduction();
    bucket.finish_reduction();
  }
  fill();
  std::set<StreamIndex> waited;
  for (const StreamIndex producer : kProducers)
    if (log.waits.contains(
            {runtime.user_stream(producer).id(), runtime.stream(StreamRole::reduction).id()}))
      waited.insert(producer);
  return waited;
}

TEST(H19, Only_the_current_stream_waits_before_a_buffer_is_written_again) {
  EXPECT_EQ(producers_that_waited({}), (std::set<StreamIndex>{1, 2}));
  EXPECT_EQ(producers_that_waited(only(Quirk::h19_reuse_waits_current_stream)),
            (std::set<StreamIndex>{2}));
}

// --- two fallbacks over the same parameters ----------------------------------------------------

TEST(EagerFallback, Releases_nothing_that_another_engines_graph_claims) {
  HostWorld world({});
  const CpuOps ops;
  Autograd ag(ops);
  MlpModel model;
  const ZeroConfig config{.stage = 3, .stage3_param_persistence_threshold = 0};
  Engine::Core core(ag, model, config, world.runtime(0), EngineOptions{}, LossScaler());
  ParameterGatherer& gatherer = stage3_of(core).gatherer();
  EagerFallback ours(core.context(), gatherer);
  EagerFallback theirs(core.context(), gatherer);
  PartitionedParameter& claimed = gatherer.parameters().at(0);
  PartitionedParameter& left = gatherer.parameters().at(1);

  ours.begin_forward();
  ours.read(claimed);
  const auto graph = ours.end_forward(true);
  ASSERT_TRUE(graph);
  gatherer.gather({&left});
  theirs.begin_forward();
  EXPECT_TRUE(claimed.is_available()) << "its backward is still to come";
  EXPECT_FALSE(left.is_available()) << "whole, and nobody's";
  theirs.end_forward(false);
  ours.start_backward(*graph);
  ours.end_backward();
  EXPECT_FALSE(claimed.is_available());
}

}  // namespace
}  // namespace zeroproof
