// tests/unit/v1/zero/test_zero_activation_checkpoint_lifecycle.py: stage 3, when parameters go.
#include <array>

#include "model/functions/indexing.h"
#include "model/nn/embedding.h"
#include "tests/peer/support/probe.h"
#include "tests/peer/support/training.h"
#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof::peer {
namespace {

ZeroConfig lifecycle_config(DType dtype = DType::float32) {
  ZeroConfig config = base_config(3, dtype);
  config.stage3_prefetch_bucket_size = 0;
  config.stage3_max_reuse_distance = 0;
  return config;
}

CheckpointBody calling(Autograd& ag, const Net& net, const std::string& child) {
  return [&ag, &net, child](const TensorList& inputs) { return net.call_list(ag, child, inputs); };
}

Tensor in_checkpoint(Autograd& ag, const CheckpointBody& body, const TensorList& inputs) {
  return checkpoint(ag, CheckpointKind::non_reentrant, body, inputs).at(0);
}

Tensor square_loss(Autograd& ag, const Tensor& x) {
  return mean(ag, sq(ag, x));
}

// A module that calls itself three deep, in one checkpoint.
NetMaker make_recursive() {
  return []() -> ModulePtr {
    const auto block =
        std::make_shared<Net>(Net::Parts{.children = {{"lin", linear_layer(4, 4, 1)}}},
                              [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
                                const Tensor x = tanh(ag, net.call(ag, "lin", in.at(0)));
                                const double depth = in.at(1).item();
                                if (depth == 0.0) return {x};
                                return net(ag, {x, Tensor::full({}, depth - 1.0, DType::float32)});
                              });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"in", linear_layer(4, 4, 2)}, {"block", block}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x =
              in_checkpoint(ag, calling(ag, net, "block"),
                            {net.call(ag, "in", in.at(0)), Tensor::full({}, 2.0, DType::float32)});
          return {square_loss(ag, x)};
        });
  };
}

}  // namespace

PEER_ROW(TestZero3ActivationCheckpointLifecycle,
         test_reused_checkpointed_module_invocations_release_independently) {
  each("granularity", std::array{0, 1000}, [&](int granularity) {
    on_ranks(1, twin, [&](Rank& rank) {
      ZeroConfig config = lifecycle_config();
      config.stage3_module_granularity_threshold = granularity;
      Loop loop{.steps = 2};
      loop.after_backward = [](Engined& engine, const Place&) {
        require_released(engine, "after the backward");
      };
      require_matches_ddp(rank, make_recursive(), config, loop);
    });
  });
}

namespace {

// in, then (a probe) what is in the checkpoint, then the head. `look` runs in backward when all
// of the checkpoint has had its own.
NetMaker make_probed(const ModulePtr& inside, const std::function<void()>& look) {
  return [inside, look]() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"in", linear_layer(4, 4, 1)},
                                {"inside", inside},
                                {"head", linear_layer(4, 4, 2)}}},
        [look](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = probe(ag, net.call(ag, "in", in.at(0)), look);
          const Tensor y = in_checkpoint(ag, calling(ag, net, "inside"), {x});
          return {square_loss(ag, net.call(ag, "head", y))};
        });
  };
}

void releases_at_last_use(const Twin& twin, const std::function<ModulePtr()>& inside,
                          const std::string& name) {
  on_ranks(1, twin, [&](Rank& rank) {
    Engined* looked_at = nullptr;
    int looks = 0;
    const auto look = [&] {
      ++looks;
      PartitionedParameter& parameter = looked_at->partitioned(name);
      if (twin.has_fault("a use that nobody ends"))
        looked_at->zero3().gatherer().gather({&parameter});
      require(parameter.is_partitioned(), name + " is still there after its last use");
    };
    Engined engine = rank.engine(make_probed(inside(), look), lifecycle_config());
    looked_at = &engine;
    for (int step = 0; step < 2; ++step) {
      run_engine(rank, engine, {}, {0, step, 0});
      require_released(engine, "after the backward");
      engine->step();
    }
    require(looks == 2, "the probe has run in both backwards");
  });
}

}  // namespace

// Upstream fails here; ours knows which call of a module uses a parameter.
PEER_ROW(TestZero3ActivationCheckpointLifecycle,
         test_recomputed_parameter_releases_at_last_activation_consumer) {
  const auto inside = []() -> ModulePtr {
    const ModulePtr norm = norm_layer(4, 5);
    freeze(*norm);
    return std::make_shared<Net>(
        Net::Parts{.children = {{"norm", norm}, {"lin", linear_layer(4, 4, 6)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {tanh(ag, net.call(ag, "lin", net.call(ag, "norm", in.at(0))))};
        });
  };
  releases_at_last_use(twin, inside, "inside.norm.weight");
}

PEER_ROW(TestZero3ActivationCheckpointLifecycle,
         test_frozen_parameter_without_backward_consumer_releases_at_last_use) {
  const auto inside = []() -> ModulePtr {
    const auto rows = std::make_shared<nn::Embedding>(sample({3, 4}, 5));
    return std::make_shared<Net>(
        Net::Parts{.children = {{"emb", rows}, {"lin", linear_layer(4, 4, 6)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor row = net.call(ag, "emb", Tensor::of({1, 2}, {2}, DType::float32));
          return {tanh(ag, net.call(ag, "lin", mul(ag, in.at(0), row)))};
        });
  };
  releases_at_last_use(twin, inside, "inside.emb.weight");
}

namespace {

NetMaker make_checkpointed() {
  return []() -> ModulePtr {
    const ModulePtr norm = norm_layer(4, 9);
    freeze(*norm);
    const auto block = std::make_shared<Net>(
        Net::Parts{.children = {{"norm", norm}, {"lin", linear_layer(4, 4, 1)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {tanh(ag, net.call(ag, "lin", net.call(ag, "norm", in.at(0))))};
        });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"block", block}, {"head", linear_layer(4, 4, 2)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = in_checkpoint(ag, calling(ag, net, "block"), {in.at(0)});
          return {square_loss(ag, net.call(ag, "head", x))};
        });
  };
}

void releases_without_input_gradient(const Twin& twin, DType dtype) {
  on_ranks(1, twin, [&](Rank& rank) {
    ZeroConfig config = lifecycle_config(dtype);
    config.gradient_accumulation_steps = 2;
    Loop loop{.steps = 2, .micro_batches = 2};
    loop.is_first_only = true;
    loop.compares_parameters = dtype == DType::float32;
    loop.after_backward = [&](Engined& engine, const Place&) {
      PartitionedParameter& parameter = engine.partitioned("block.norm.weight");
      if (twin.has_fault("a use that nobody ends")) engine.zero3().gatherer().gather({&parameter});
      require_released(engine, "after a micro-batch");
    };
    require_matches_ddp(rank, make_checkpointed(), config, loop);
  });
}

}  // namespace

PEER_ROW(TestZero3ActivationCheckpointLifecycle,
         test_no_grad_checkpoint_input_direct_backward_releases) {
  releases_without_input_gradient(twin, DType::float32);
}

PEER_ROW(TestZero3ActivationCheckpointLifecycle,
         test_no_grad_checkpoint_input_scaled_backward_releases) {
  for (const DType dtype : {DType::float16, DType::bfloat16})
    releases_without_input_gradient(twin, dtype);
}

PEER_ROW(TestZero3ActivationCheckpointLifecycle,
         test_nonreentrant_checkpoint_early_stop_unwinds_for_clean_retry) {
  on_ranks(1, twin, [&](Rank& rank) {
    int starts = 0;
    int tails = 0;
    bool is_recompute = false;
    const NetMaker make = [&]() -> ModulePtr {
      const auto block = std::make_shared<Net>(
          Net::Parts{.children = {{"lin", linear_layer(4, 4, 1)}}},
          [&](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
            starts += is_recompute ? 1 : 0;
            const Tensor x = tanh(ag, net.call(ag, "lin", in.at(0)));
            tails += is_recompute ? 1 : 0;
            return {add(ag, x, 1.0)};
          });
      return std::make_shared<Net>(
          Net::Parts{.children = {{"in", linear_layer(4, 4, 3)}, {"block", block}}},
          [&](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
            is_recompute = false;
            const Tensor x =
                in_checkpoint(ag, calling(ag, net, "block"), {net.call(ag, "in", in.at(0))});
            is_recompute = true;
            return {square_loss(ag, x)};
          });
    };
    Engined engine = rank.engine(make, lifecycle_config());
    for (int step = 0; step < 2; ++step) {
      run_engine(rank, engine, {}, {0, step, 0});
      require_released(engine, "iteration " + std::to_string(step));
      require(has_values(engine->full_gradients()), "there are gradients");
      engine->step();
    }
    require(starts == 2 && tails == 0, "two recomputes that stop early");
  });
}

namespace {

struct Boom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A block in a checkpoint whose recompute throws while *is_armed, and a probe after it.
NetMaker make_throwing(
    const std::function<void()>& in_recompute, const std::function<void()>& in_backward,
    const std::function<void()>& in_forward = [] {}) {
  return [=]() -> ModulePtr {
    const auto recomputing = std::make_shared<bool>(false);
    const auto block = std::make_shared<Net>(
        Net::Parts{.children = {{"a", linear_layer(4, 4, 1)}, {"b", linear_layer(4, 4, 2)}}},
        [=](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "a", in.at(0));
          if (*recomputing) in_recompute();
          return {tanh(ag, net.call(ag, "b", x))};
        });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"in", linear_layer(4, 4, 3)}, {"block", block}}},
        [=](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          in_forward();
          *recomputing = false;
          const Tensor x = probe(ag, net.call(ag, "in", in.at(0)), in_backward);
          const Tensor y = in_checkpoint(ag, calling(ag, net, "block"), {x});
          *recomputing = true;
          return {square_loss(ag, y)};
        });
  };
}

}  // namespace

// Upstream sees the parameters alone; here the numbers of the retry, too (P78).
PEER_ROW(TestZero3ActivationCheckpointLifecycle,
         test_recompute_forward_exception_unwinds_for_clean_retry) {
  on_ranks(1, twin, [&](Rank& rank) {
    bool is_armed = true;
    const auto maybe = [&] {
      if (std::exchange(is_armed, false)) throw Boom("in the recompute");
    };
    Engined engine = rank.engine(make_throwing(maybe, [] {}), lifecycle_config());
    const Place place{0, 0, 0};
    require_throws([&] { run_engine(rank, engine, {.way = BackwardWay::managed}, place); },
                   "in the recompute");
    TensorList inputs = batch_of(place, 4, DType::float32);
    inputs[0].set_requires_grad(true);
    rank.ag.backward(engine->forward(inputs[0]));
    require_released(engine, "after the retry");
    Ddp ddp(make_throwing([] {}, [] {}), {.ranks = 1});
    run_reference(ddp, {}, engine->config(), place);
    require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(DType::float32),
                  "gradients of the retry");
    for (const double value : inputs[0].grad().values())
      require(value == value, "the gradient of the input is a number");
    engine->step();
  });
}

PEER_ROW(TestZero3ActivationCheckpointLifecycle, test_reset_step_drains_incomplete_backward_state) {
  on_ranks(1, twin, [&](Rank& rank) {
    Engined* looked_at = nullptr;
    bool is_armed = true;
    const auto boom = [&] {
      if (std::exchange(is_armed, false)) throw Boom("in the backward");
    };
    // Upstream throws before any recompute; here after one, with its modules fetched.
    const auto look = [&] {
      if (!looked_at) return;
      require(!looked_at->zero3().coordinator().has_active_backward(), "no backward is active");
      require(looked_at->zero3().forward_stack_depth() == 1, "only the root runs");
      for (PartitionedParameter& parameter : looked_at->zero3().gatherer().parameters())
        require(!parameter.is_used(), "nobody uses " + parameter.parameter().name);
    };
    Engined engine = rank.engine(make_throwing([] {}, boom, look), lifecycle_config());
    require_throws([&] { run_engine(rank, engine, {}, {0, 0, 0}); }, "in the backward");
    looked_at = &engine;
    run_engine(rank, engine, {}, {0, 0, 0});
    require_released(engine, "after the retry");
    Ddp ddp(make_throwing([] {}, [] {}), {.ranks = 1});
    run_reference(ddp, {}, engine->config(), {0, 0, 0});
    require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(DType::float32),
                  "gradients of the retry");
  });
}

PEER_ROW(TestZero3ActivationCheckpointLifecycle, test_checkpoint_external_parameter_lifecycle) {
  int consumers = 0;
  const NetMaker make = [&consumers]() -> ModulePtr {
    const auto giver = std::make_shared<Net>(
        Net::Parts{.children = {{"lin", linear_layer(4, 4, 1)}},
                   .parameters = {{"bias",
                                   [] {
                                     Tensor bias = sample({4}, 3);
                                     bias.set_requires_grad(true);
                                     return bias;
                                   }()}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {tanh(ag, net.call(ag, "lin", in.at(0))), net.parameter("bias")};
        });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"giver", giver}, {"head", linear_layer(4, 4, 2)}}},
        [&consumers](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const auto body = [&ag, &net, &consumers](const TensorList& inner) -> TensorList {
            const TensorList two = net.call_list(ag, "giver", {inner.at(0)});
            require(two.at(1).numel() == 4, "the bias is available where it is used");
            ++consumers;
            return {tanh(ag, add(ag, two.at(0), two.at(1)))};
          };
          return {square_loss(ag, net.call(ag, "head", in_checkpoint(ag, body, {in.at(0)})))};
        });
  };
  on_ranks(1, twin, [&](Rank& rank) {
    Loop loop{.steps = 2};
    loop.inputs = [](const Place& place) {
      TensorList inputs = batch_of(place, 4, DType::float32);
      inputs[0].set_requires_grad(true);
      return inputs;
    };
    loop.after_backward = [](Engined& engine, const Place&) {
      require_released(engine, "after the backward");
    };
    consumers = 0;
    require_matches_ddp(rank, make, lifecycle_config(), loop);
    require(consumers == 8, "forward and recompute of both, twice");
  });
}

}  // namespace zeroproof::peer
