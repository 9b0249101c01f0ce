// Activation checkpointing against the same program without it, and its errors against PyTorch's.
#include "zeroproof/model/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "sim/explorer.h"
#include "sim/schedulers/exhaustive.h"
#include "tests/model/pick.h"
#include "tests/model/watched_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using testing::pick;

// One step of a random network; `inner` is the body of a checkpoint or of the two branches.
struct Step {
  enum class Kind { linear, factor, relu, dropout, fork, checkpoint } kind;
  std::size_t parameter = 0;
  CheckpointKind variant = CheckpointKind::reentrant;
  CheckpointOptions options = {};
  std::vector<std::vector<Step>> inner = {};
};
using Steps = std::vector<Step>;

constexpr std::size_t kParameters = 3;

Steps random_steps(int depth);

Step random_step(int depth) {
  using Kind = Step::Kind;
  Step step{.kind = static_cast<Kind>(pick(0, 4)), .parameter = pick<std::size_t>(0, kParameters)};
  const int what = depth > 0 ? pick(0, 8) : 7;
  if (what < 4) {
    step.kind = Kind::checkpoint;
    step.variant = what % 2 == 0 ? CheckpointKind::reentrant : CheckpointKind::non_reentrant;
    step.options.stops_early = pick(0, 2) == 0;
    step.inner = {random_steps(depth - 1)};
  } else if (what == 4) {
    step.kind = Kind::fork;
    step.inner = {random_steps(depth - 1), random_steps(depth - 1)};
  }
  return step;
}

Steps random_steps(int depth) {
  Steps steps;
  for (int i = pick(1, 4); i > 0; --i) steps.push_back(random_step(depth));
  return steps;
}

// Small integers, dropped with probability 1/2: sums are exact in whatever order they are made.
std::vector<double> small_integers(std::size_t count) {
  std::vector<double> values(count);
  for (double& value : values) value = pick(-1, 2);
  return values;
}

struct Parameters {
  Tensor x;
  TensorList weights = {};
  TensorList factors = {};

  static Parameters random() {
    Parameters made{.x = Tensor::of(small_integers(4), {2, 2})};
    for (std::size_t i = 0; i < kParameters; ++i) {
      made.weights.push_back(Tensor::of(small_integers(4), {2, 2}));
      made.factors.push_back(Tensor::of(small_integers(2), {2}));
    }
    return made;
  }
  // The same numbers in leaves of their own: a leaf belongs to one Autograd.
  Parameters copy() const {
    Parameters made{.x = x.on(Device::cpu())};
    for (const Tensor& weight : weights) made.weights.push_back(weight.on(Device::cpu()));
    for (const Tensor& factor : factors) made.factors.push_back(factor.on(Device::cpu()));
    for (const Tensor& leaf : made.all()) leaf.set_requires_grad(true);
    return made;
  }
  TensorList all() const {
    TensorList leaves = {x};
    leaves.insert(leaves.end(), weights.begin(), weights.end());
    leaves.insert(leaves.end(), factors.begin(), factors.end());
    return leaves;
  }
  std::vector<std::vector<double>> take_grads() const {
    std::vector<std::vector<double>> grads;
    for (const Tensor& leaf : all()) {
      grads.push_back(leaf.grad().is_defined() ? leaf.grad().values() : std::vector<double>());
      leaf.set_grad(Tensor());
    }
    return grads;
  }
};

class Network {
 public:
  Network(Autograd& ag, const Parameters& parameters, bool has_checkpoints)
      : ag_(ag), parameters_(parameters), has_checkpoints_(has_checkpoints) {}

  Tensor run(const Steps& steps) const { return run(steps, parameters_.x); }

 private:
  Tensor run(const Steps& steps, Tensor t) const {
    for (const Step& step : steps) t = run(step, t);
    return t;
  }

  Tensor run(const Step& step, const Tensor& t) const {
    switch (step.kind) {
      case Step::Kind::linear:
        return linear(ag_, t, parameters_.weights[step.parameter], Tensor());
      case Step::Kind::factor:
        return mul(ag_, t, parameters_.factors[step.parameter]);
      case Step::Kind::relu:
        return relu(ag_, t);
      case Step::Kind::dropout:
        return dropout(ag_, t, 0.5);
      case Step::Kind::fork: {
        const Tensor left = run(step.inner[0], t);
        return add(ag_, left, run(step.inner[1], t));
      }
      case Step::Kind::checkpoint:
        break;
    }
    const auto body = [network = *this, steps = step.inner[0]](const TensorList& inputs) {
      return TensorList{network.run(steps, inputs[0])};
    };
    if (!has_checkpoints_) return body({t})[0];
    return checkpoint(ag_, step.variant, body, {t}, step.options)[0];
  }

  Autograd& ag_;
  const Parameters& parameters_;
  bool has_checkpoints_;
};

// A network under test: two losses over it, so that backward has two roots.
struct NetworkRun {
  explicit NetworkRun(const Parameters& random, const std::vector<bool>& is_frozen,
                      bool has_checkpoints, const Steps& steps, Chooser* chooser = nullptr)
      : parameters(random.copy()) {
    if (chooser) ag.set_scheduling(*chooser, OrderModel::any_topological);
    const TensorList leaves = parameters.all();
    for (std::size_t i = 1; i < leaves.size(); ++i) leaves[i].set_requires_grad(!is_frozen[i]);
    const Tensor out = Network(ag, parameters, has_checkpoints).run(steps);
    ag.backward(TensorList{sum(ag, out), sum(ag, mul(ag, out, parameters.factors[0]))});
  }

  CpuOps ops;
  Autograd ag{ops};
  Parameters parameters;
};

// Every linear extension of every graph task, nested ones included, unless there are too many.
RC_GTEST_PROP(Checkpoint, Nested_at_random_gives_the_gradients_of_none_in_every_order, ()) {
  constexpr std::uint64_t kOrdersMax = 150;
  const Parameters random = Parameters::random();
  std::vector<bool> is_frozen;
  for (std::size_t i = 0; i < random.all().size(); ++i) is_frozen.push_back(pick(0, 4) == 0);
  Steps steps = random_steps(3);
  while (true) {
    NetworkRun plain(random, is_frozen, false, steps);
    const auto expected = plain.parameters.take_grads();
    std::uint64_t different = 0;
    const RunFunction run = [&](Chooser& chooser) {
      NetworkRun one(random, is_frozen, true, steps, &chooser);
      different += one.parameters.take_grads() == expected ? 0 : 1;
      return Outcome{};
    };
    ExhaustiveScheduler scheduler(Pruning::off);
    const ExploreResult explored = explore(run, scheduler, {.executions = kOrdersMax});
    RC_ASSERT(different == 0U);
    RC_CLASSIFY(explored.has_covered_every_order(), "every order");
    RC_CLASSIFY(explored.complete_executions > 1, "several orders");
    if (explored.has_covered_every_order() || steps.size() == 1) return;
    steps.pop_back();
  }
}

RC_GTEST_PROP(Checkpoint, Nested_at_random_gives_bitwise_the_gradients_of_none, ()) {
  const CpuOps ops;
  const Parameters random = Parameters::random();
  const Parameters parameters = random.copy();
  const Steps steps = random_steps(3);
  const bool overrides = pick(0, 2) == 0;

  Autograd plain(ops);
  const Parameters plain_parameters = random.copy();
  const Tensor expected_loss = sum(plain, Network(plain, plain_parameters, false).run(steps));
  plain.backward(expected_loss);
  const auto expected = plain_parameters.take_grads();

  Autograd ag(ops);
  std::optional<CheckpointEarlyStop> early_stop;
  if (overrides) early_stop.emplace(ag, pick(0, 2) == 0);
  const Network network(ag, parameters, true);
  const Tensor loss = sum(ag, network.run(steps));
  RC_ASSERT(loss.values() == expected_loss.values());
  const RngState rng = ag.global().rng.state(Device::cpu());
  RC_ASSERT(rng == plain.global().rng.state(Device::cpu()));
  for (int i = 0; i < 2; ++i) {  // each graph task recomputes for itself (rule K5)
    ag.backward(loss, {.retain_graph = i == 0});
    RC_ASSERT(parameters.take_grads() == expected);
    RC_ASSERT(ag.global().rng.state(Device::cpu()) == rng);
  }
}

// Throws at the operation that is counted down to.
class FailingOps final : public testing::WatchedOps {
 public:
  struct Failure {};

  void fail_at(int operation) { left_ = operation; }

 private:
  void on_call(Kind) const override {
    if (left_ >= 0 && left_-- == 0) throw Failure{};
  }

  mutable int left_ = -1;
};

Step checkpoint_step(CheckpointKind variant, bool stops_early, Steps inner) {
  return {.kind = Step::Kind::checkpoint,
          .variant = variant,
          .options = {.stops_early = stops_early},
          .inner = {std::move(inner)}};
}

// Both variants in both, one of them without early stop.
Steps nested_steps() {
  constexpr auto kReentrant = CheckpointKind::reentrant;
  constexpr auto kNonReentrant = CheckpointKind::non_reentrant;
  const Step first = {.kind = Step::Kind::linear, .parameter = 0};
  const Step second = {.kind = Step::Kind::linear, .parameter = 1};
  const Step factor = {.kind = Step::Kind::factor};
  const Step dropped = {.kind = Step::Kind::dropout};
  return {checkpoint_step(kNonReentrant, true,
                          {first, checkpoint_step(kReentrant, true, {second, dropped, factor}),
                           checkpoint_step(kNonReentrant, false, {factor, first}), factor}),
          checkpoint_step(kReentrant, true,
                          {second, checkpoint_step(kNonReentrant, true, {factor, second})})};
}

Parameters fixed_parameters() {
  Parameters made{.x = Tensor::of({1, 2, 3, 4}, {2, 2})};
  for (std::size_t i = 0; i < kParameters; ++i) {
    const auto value = static_cast<double>(i + 1);
    made.weights.push_back(Tensor::of({value, 1, -1, value}, {2, 2}));
    made.factors.push_back(Tensor::of({value, -1}, {2}));
  }
  for (const Tensor& leaf : made.all()) leaf.set_requires_grad(true);
  return made;
}

void expect_untouched(const Autograd& ag) {
  EXPECT_TRUE(ag.is_grad_enabled());
  EXPECT_EQ(nullptr, ag.local().saved_tensor_hooks);
  EXPECT_FALSE(ag.local().autocast.may_cast());
  EXPECT_TRUE(ag.current_graph_task().is_none());
}

TEST(Checkpoint, Failing_anywhere_in_backward_leaves_the_next_backward_right) {
  FailingOps ops;
  const Parameters parameters = fixed_parameters();
  Autograd ag(ops);
  const Tensor loss = sq(ag, Network(ag, parameters, true).run(nested_steps()));
  ag.backward(loss, {.retain_graph = true});
  const auto expected = parameters.take_grads();
  const RngState rng = ag.global().rng.state(Device::cpu());
  int operation = 0;
  for (bool has_failed = true; has_failed; ++operation) {
    ops.fail_at(operation);
    try {
      ag.backward(loss, {.retain_graph = true});
      has_failed = false;
    } catch (const FailingOps::Failure&) {
    }
    ops.fail_at(-1);
    expect_untouched(ag);
    EXPECT_EQ(rng, ag.global().rng.state(Device::cpu()));
    parameters.take_grads();
    ag.backward(loss, {.retain_graph = true});
    ASSERT_EQ(expected, parameters.take_grads()) << "after a failure at operation " << operation;
  }
  EXPECT_GT(operation, 30);
}

TEST(Checkpoint, Failing_anywhere_in_forward_leaves_the_next_forward_right) {
  FailingOps ops;
  const Parameters parameters = fixed_parameters();
  Autograd ag(ops);
  const auto run = [&] {
    ag.global().rng.manual_seed(7);
    return sq(ag, Network(ag, parameters, true).run(nested_steps()));
  };
  ag.backward(run());
  const auto expected = parameters.take_grads();
  int operation = 0;
  for (bool has_failed = true; has_failed; ++operation) {
    ops.fail_at(operation);
    try {
      run();
      has_failed = false;
    } catch (const FailingOps::Failure&) {
    }
    ops.fail_at(-1);
    expect_untouched(ag);
    ag.backward(run());
    ASSERT_EQ(expected, parameters.take_grads()) << "after a failure at operation " << operation;
  }
  EXPECT_GT(operation, 8);
}

class CheckpointTest : public ::testing::Test {
 protected:
  // What backward reports about a region whose body differs from its n-th run on.
  std::string error_of(CheckpointKind kind, const CheckpointBody& body,
                       const CheckpointOptions& options = {}) {
    const Tensor y = checkpoint(ag_, kind, body, {x_}, options)[0];
    try {
      ag_.backward(sum(ag_, y));
    } catch (const AutogradError& error) {
      return error.what();
    }
    return "";
  }

  // tanh applied as often as the run says: the first number is that of the forward.
  CheckpointBody tanh_times(int forward, int recompute) {
    return [this, forward, recompute, runs = 0](const TensorList& inputs) mutable {
      Tensor t = inputs[0];
      for (int i = runs++ == 0 ? forward : recompute; i > 0; --i) t = tanh(ag_, t);
      return TensorList{t};
    };
  }

  const CpuOps ops_{};
  Autograd ag_{ops_};
  Tensor x_ = [] {
    Tensor x = Tensor::of({0.1, 0.2, 0.3, 0.4}, {2, 2});
    x.set_requires_grad(true);
    return x;
  }();
};

constexpr auto kReentrant = CheckpointKind::reentrant;
constexpr auto kNonReentrant = CheckpointKind::non_reentrant;
constexpr std::array kKinds = {kReentrant, kNonReentrant};

TEST_F(CheckpointTest, Reports_a_recompute_that_saves_fewer_tensors) {
  EXPECT_EQ(
      "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
      "and recomputation.\nNumber of tensors saved during forward: 3\n"
      "Number of tensors saved during recomputation: 1.",
      error_of(kNonReentrant, tanh_times(3, 1)));
}

TEST_F(CheckpointTest, Reports_a_recompute_that_saves_more_tensors_unless_it_stops_before) {
  EXPECT_EQ("", error_of(kNonReentrant, tanh_times(1, 3)));
  EXPECT_EQ(
      "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
      "original forward pass.",
      error_of(kNonReentrant, tanh_times(1, 3), {.stops_early = false}));
}

TEST_F(CheckpointTest, Reports_recomputed_tensors_of_another_shape_unless_told_not_to) {
  const auto body = [&] {
    return [this, runs = 0](const TensorList& inputs) mutable {
      const Tensor h = tanh(ag_, inputs[0]);
      return TensorList{tanh(ag_, runs++ == 0 ? h : narrow(ag_, h, 0, {0, 1}))};
    };
  };
  EXPECT_EQ(
      "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
      "than during the forward pass.\ntensor at position 1:\n"
      "saved metadata: {'shape': torch.Size([2, 2]), 'dtype': torch.float64, 'device': "
      "device(type='cpu')}\n"
      "recomputed metadata: {'shape': torch.Size([1, 2]), 'dtype': torch.float64, 'device': "
      "device(type='cpu')}\n",
      error_of(kNonReentrant, body()));
  EXPECT_EQ("", error_of(kNonReentrant, body(), {.determinism_check = DeterminismCheck::none}));
}

TEST_F(CheckpointTest, Gives_each_saved_tensor_once_a_task) {
  const CustomFunction twice{.name = "TwiceBackward",
                             .forward =
                                 [](FunctionContext& context, const TensorList& inputs) {
                                   context.save_for_backward(inputs);
                                   return TensorList{inputs[0].detach()};
                                 },
                             .backward =
                                 [](FunctionContext& context, const TensorList& grads) {
                                   context.saved_tensors();
                                   context.saved_tensors();
                                   return grads;
                                 }};
  const auto body = [&](const TensorList& inputs) { return apply_function(ag_, twice, inputs); };
  EXPECT_THAT(error_of(kNonReentrant, body),
              ::testing::StartsWith("torch.utils.checkpoint: Unpack is being triggered for a "
                                    "tensor that was already unpacked once."));
}

TEST_F(CheckpointTest, Refuses_a_reentrant_backward_that_knows_its_inputs) {
  const CheckpointBody body = tanh_times(1, 1);
  const Tensor loss = sum(ag_, checkpoint(ag_, kReentrant, body, {x_})[0]);
  EXPECT_THROW(ag_.grad({loss}, {x_}, {.retain_graph = true}), AutogradError);
  EXPECT_THROW(ag_.backward(loss, {.retain_graph = true, .inputs = {x_}}), AutogradError);
  EXPECT_FALSE(x_.grad().is_defined());
  ag_.backward(loss);
  EXPECT_TRUE(x_.grad().is_defined());
}

TEST_F(CheckpointTest, Refuses_a_reentrant_body_without_gradient) {
  const auto body = [&](const TensorList& inputs) {
    return TensorList{mul(ag_, inputs[0].detach(), 2.0)};
  };
  EXPECT_EQ("none of output has requires_grad=True, this checkpoint() is not necessary",
            error_of(kReentrant, body));
}

// S2: the inputs of a region are saved like any other tensor.
TEST_F(CheckpointTest, Reports_inputs_that_were_modified_in_place) {
  for (const CheckpointKind kind : kKinds) {
    Tensor h = mul(ag_, x_, 1.0);
    const Tensor y = checkpoint(ag_, kind, tanh_times(1, 1), {h})[0];
    mul_in_place(ag_, h, 2.0);
    EXPECT_THROW(ag_.backward(sum(ag_, y)), AutogradError);
  }
}

// Several inputs, one without gradient; outputs of which two are inputs, two have no gradient and
// two are not used.
TEST_F(CheckpointTest, Takes_and_gives_several_tensors) {
  const Tensor w = Tensor::of({3, -2}, {2});
  const Tensor z = Tensor::of({5, 7}, {2});
  w.set_requires_grad(true);
  const auto body = [&](const TensorList& in) {
    EXPECT_FALSE(in[2].requires_grad());
    return TensorList{mul(ag_, in[0], in[1]), in[0], mul(ag_, in[2], 2.0), sin(ag_, in[1]), in[2]};
  };
  const auto grads = [&](const TensorList& y) {
    ag_.backward(sq(ag_, add(ag_, add(ag_, y[0], y[1]), y[2])));
    const auto found = std::vector{x_.grad().values(), w.grad().values()};
    x_.set_grad(Tensor());
    w.set_grad(Tensor());
    return found;
  };
  const auto expected = grads(body({x_, w, z}));
  for (const CheckpointKind kind : kKinds)
    EXPECT_EQ(expected, grads(checkpoint(ag_, kind, body, {x_, w, z})));
}

TEST_F(CheckpointTest, Runs_its_body_again_under_the_autocast_settings_of_the_forward) {
  for (const CheckpointKind kind : kKinds) {
    for (const bool is_on_in_forward : {false, true}) {
      std::vector<AutocastSetting> seen;
      const auto body = [&](const TensorList& inputs) {
        seen.push_back(ag_.local().autocast.cpu);
        return TensorList{sin(ag_, inputs[0])};
      };
      AutocastSetting& setting = ag_.local().autocast.cpu;
      setting = {is_on_in_forward, DType::float16};
      const Tensor loss = sum(ag_, checkpoint(ag_, kind, body, {x_})[0]);
      const AutocastSetting around_backward = {!is_on_in_forward, DType::bfloat16};
      setting = around_backward;
      ag_.backward(loss);
      EXPECT_EQ((std::vector<AutocastSetting>(2, {is_on_in_forward, DType::float16})), seen);
      EXPECT_EQ(around_backward, setting);
    }
  }
}

// K1: the generators of the CPU and of where the inputs live.
TEST_F(CheckpointTest, Draws_the_numbers_of_the_forward_again_unless_told_not_to) {
  Rng& rng = ag_.global().rng;
  const Device device = Device::cuda(1);
  const Tensor x = x_.on(device);
  x.set_requires_grad(true);
  for (const CheckpointKind kind : kKinds) {
    for (const bool preserves : {false, true}) {
      std::vector<std::pair<double, std::vector<double>>> drawn;
      const auto body = [&](const TensorList& inputs) {
        const double number = rng.uniforms(Device::cpu(), 1)[0];
        const Tensor dropped = dropout(ag_, inputs[0], 0.5);
        drawn.emplace_back(number, dropped.values());
        return TensorList{sin(ag_, dropped)};
      };
      const Tensor loss =
          sum(ag_, checkpoint(ag_, kind, body, {x}, {.preserves_rng_state = preserves})[0]);
      const auto before = std::pair(rng.state(Device::cpu()), rng.state(device));
      ag_.backward(loss);
      EXPECT_EQ(preserves, drawn.at(0) == drawn.at(1));
      EXPECT_EQ(preserves, before == std::pair(rng.state(Device::cpu()), rng.state(device)));
    }
  }
}

// N2: the Function that kept the inputs before PyTorch 2.12 took a number all the same.
TEST_F(CheckpointTest, Does_nothing_where_grad_mode_is_off) {
  const GradMode no_grad(ag_, false);
  for (const auto& [release, numbers] : {std::pair("2.11.0", 1U), std::pair("2.15.0", 0U)}) {
    ag_.global().release = *TorchRelease::parse(release);
    const std::uint64_t before = ag_.next_sequence_nr();
    const Tensor y = checkpoint(ag_, kNonReentrant, tanh_times(1, 1), {x_})[0];
    EXPECT_FALSE(y.requires_grad());
    EXPECT_EQ(numbers, ag_.next_sequence_nr() - before) << release;
  }
}

// K5: outside a backward, each unpacking is a recompute of its own.
TEST_F(CheckpointTest, Recomputes_for_every_tensor_that_is_read_outside_a_backward) {
  FunctionContext* saved = nullptr;
  const CustomFunction keep{
      .name = "KeepBackward",
      .forward =
          [&](FunctionContext& context, const TensorList& inputs) {
            saved = &context;
            context.save_for_backward({inputs[0], inputs[0]});
            return TensorList{inputs[0].detach()};
          },
      .backward = [](FunctionContext&, const TensorList& grads) { return grads; }};
  int runs = 0;
  const auto body = [&](const TensorList& inputs) {
    ++runs;
    return apply_function(ag_, keep, {sin(ag_, inputs[0])});
  };
  const Tensor y = checkpoint(ag_, kNonReentrant, body, {x_})[0];
  FunctionContext* const of_forward = saved;
  for (int read = 1; read <= 2; ++read) {
    for (const Tensor& tensor : of_forward->saved_tensors())
      EXPECT_EQ(sin(ag_, x_).values(), tensor.values());
    EXPECT_EQ(1 + 2 * read, runs);
  }
}

TEST_F(CheckpointTest, Starts_a_failed_recompute_from_its_beginning_in_the_same_task) {
  const CustomFunction retry{.name = "RetryBackward",
                             .forward =
                                 [](FunctionContext& context, const TensorList& inputs) {
                                   context.save_for_backward(inputs);
                                   return TensorList{inputs[0].detach()};
                                 },
                             .backward =
                                 [](FunctionContext& context, const TensorList& grads) {
                                   EXPECT_THROW(context.saved_tensors(), AutogradError);
                                   context.saved_tensors();
                                   return grads;
                                 }};
  int runs = 0;
  const auto body = [&](const TensorList& inputs) {
    const Tensor h = tanh(ag_, inputs[0]);
    if (++runs == 2) throw AutogradError("the first recompute fails");
    return apply_function(ag_, retry, {h});
  };
  EXPECT_EQ("", error_of(kNonReentrant, body));
  EXPECT_EQ(3, runs);
}

TEST_F(CheckpointTest, Is_freed_without_recursion) {
  constexpr int kRegions = 20'000;
  for (const CheckpointKind kind : kKinds) {
    Tensor t = x_;
    for (int i = 0; i < kRegions; ++i)
      t = checkpoint(ag_, kind,
                     [this](const TensorList& in) { return TensorList{sin(ag_, in[0])}; }, {t})[0];
    EXPECT_TRUE(t.requires_grad());
  }
}

}  // namespace
}  // namespace zeroproof
