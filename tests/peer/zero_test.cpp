// tests/unit/v1/zero/test_zero.py, without the rows on partitioned parameters.
#include <array>

#include "model/functions/losses.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kInitStages = {1, 2, 3};
constexpr DType kZeroFloat = DType::float32;

// The sum of what one linear layer without bias gives.
NetMaker make_weights(const std::vector<double>& weights) {
  return [weights]() -> ModulePtr {
    const auto layer = std::make_shared<nn::Linear>(
        Tensor::of(weights, {1, static_cast<std::int64_t>(weights.size())}, kZeroFloat));
    layer->weight.set_requires_grad(true);
    return std::make_shared<Net>(
        Net::Parts{.children = {{"lin", layer}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {sum(ag, net.call(ag, "lin", in.at(0)))};
        });
  };
}

struct ReductionWay {
  bool reduce_scatter = true;
  bool contiguous_gradients = true;
  bool prescale_gradients = false;
  double gradient_predivide_factor = 1.0;
};

constexpr std::array kWays = {ReductionWay{}, ReductionWay{false, true, true, 1.0},
                              ReductionWay{false, false, false, 2.0}};

void check_allreduce_op(Rank& rank, int stage, GradientAllreduceOp op, const ReductionWay& way) {
  ZeroConfig config = base_config(stage);
  config.gradient_allreduce_op = op;
  config.reduce_scatter = way.reduce_scatter;
  config.contiguous_gradients = way.contiguous_gradients;
  config.prescale_gradients = way.prescale_gradients;
  config.gradient_predivide_factor = way.gradient_predivide_factor;
  config.optimizer.type = OptimizerType::sgd;
  config.optimizer.sgd.lr = 1.0;
  Engined engine = rank.engine(make_weights({0.0, 0.0}), config);
  engine->backward(engine->forward(Tensor::of({1.0, 2.0}, {1, 2}, kZeroFloat)));
  engine->step();
  const double scale = op == GradientAllreduceOp::mean ? 1.0 : 2.0;
  require_equal(engine->full_parameters(), {{"lin.weight", {1, 2}, {-scale, -2.0 * scale}}}, {},
                "weights");
}

}  // namespace

PEER_ROW(TestGradientAllreduceOp, test) {
  each("stage", std::array{0, 1, 2}, [&](int stage) {
    for (std::size_t way = 0; way < kWays.size(); ++way)
      for (const auto op : {GradientAllreduceOp::mean, GradientAllreduceOp::sum})
        within("way " + std::to_string(way), [&] {
          on_ranks(2, twin,
                   [&](Rank& rank) { check_allreduce_op(rank, stage, op, kWays.at(way)); });
        });
  });
}

PEER_ROW(TestGradientAllreduceOpTraining, test) {
  each("stage", std::array{0, 1, 2}, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage);
      config.gradient_allreduce_op = GradientAllreduceOp::sum;
      config.optimizer.type = OptimizerType::adamw;
      config.optimizer.adam = optim::adamw_options();
      Engined engine = rank.engine(make_stack({}), config);
      Ddp ddp(make_stack({}), {.adam = optim::adamw_options()});
      for (int step = 0; step < 5; ++step) {
        const Loop halved{.way = BackwardWay::managed,
                          .loss = [](Autograd& ag, const TensorList& out, const Place&) {
                            return div(ag, out.at(0), 2.0);
                          }};
        run_engine(rank, engine, halved, {rank.rank(), step, 0});
        run_reference(ddp, {}, config, {0, step, 0});
        require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(kZeroFloat), "sum");
        engine->step();
        ddp.step();
        require_equal(engine->full_parameters(), ddp.parameters(), tolerance_of(kZeroFloat),
                      "parameters");
      }
    });
  });
}

PEER_ROW(TestBF16OptimizerGradReduction, test_boundary_microbatch_grad_is_reduced) {
  each("stage", std::array{0, 1, 2, 3}, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage, DType::bfloat16);
      config.gradient_accumulation_steps = 2;
      config.grad_accum_dtype = DType::float32;
      Engined engine = rank.engine(make_weights({0.0, 0.0, 0.0, 0.0}), config);
      const double first[] = {1.0, 11.0};
      for (int micro = 0; micro < 2; ++micro) {
        const double base = first[micro] + 18.0 * rank.rank();
        engine->backward(engine->forward(
            Tensor::of({base, base + 2.0, base + 4.0, base + 6.0}, {1, 4}, DType::bfloat16)));
        if (micro == 0) engine->step();
      }
      require_equal(engine->full_gradients(), {{"lin.weight", {1, 4}, {15, 17, 19, 21}}}, {},
                    "the gradient of both micro-batches on both ranks");
    });
  });
}

namespace {

// l0 or l1, as the third input says.
NetMaker make_either() {
  return []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"a", linear_layer(4, 4, 1)}, {"b", linear_layer(4, 4, 2)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const bool is_first = in.at(2).item() > 0.5;
          return {mse_loss(ag, net.call(ag, is_first ? "a" : "b", in.at(0)), in.at(1))};
        });
  };
}

}  // namespace

// Upstream asks whether it fails; here the worked example of H16 with its numbers.
PEER_ROW(TestZeroUnbalancedGradients, test) {
  each("stage", kInitStages, [&](int stage) {
    each("offload", std::array{false, true}, [&](bool is_offloaded) {
      on_ranks(1, twin, [&](Rank& rank) {
        ZeroConfig config = base_config(stage);
        config.gradient_accumulation_steps = 2;
        if (is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
        Loop loop{.steps = 3, .micro_batches = 2, .way = BackwardWay::managed};
        loop.inputs = [](const Place& place) {
          TensorList inputs = batch_of(place, 4, kZeroFloat);
          const bool is_first = place.micro == 0 || place.step == 2;
          inputs.push_back(Tensor::full({}, is_first ? 1.0 : 0.0, kZeroFloat));
          return inputs;
        };
        require_matches_ddp(rank, make_either(), config, loop);
      });
    });
  });
}

PEER_ROW(TestZero3RepeatForwardLoop, test) {
  const NetMaker make = []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"lin", linear_layer(4, 4, 1)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          Tensor x = in.at(0);
          for (int i = 0; i < 3; ++i) x = tanh(ag, net.call(ag, "lin", x));
          return {mse_loss(ag, x, in.at(1))};
        });
  };
  on_ranks(1, twin, [&](Rank& rank) {
    ZeroConfig config = base_config(3);
    config.gradient_accumulation_steps = 2;
    require_matches_ddp(rank, make, config,
                        {.steps = 2, .micro_batches = 2, .way = BackwardWay::managed});
  });
}

PEER_ROW(TestZero3DictFwd, test) {
  using OutputContainer = nn::Module::OutputContainer;
  for (const OutputContainer container :
       {OutputContainer::tensors, OutputContainer::dict, OutputContainer::dataclass}) {
    const NetMaker make = [container]() -> ModulePtr {
      const auto net = std::make_shared<Net>(
          Net::Parts{.children = {{"lin", linear_layer(4, 4, 1)}}},
          [](Autograd& ag, const Net& inner, const TensorList& in) -> TensorList {
            return {mse_loss(ag, inner.call(ag, "lin", in.at(0)), in.at(1)), Tensor(), in.at(1)};
          });
      net->container = container;
      return net;
    };
    on_ranks(1, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(3);
      config.gradient_accumulation_steps = 2;
      require_matches_ddp(rank, make, config, {.steps = 2, .micro_batches = 2});
    });
  }
}

PEER_ROW(TestZeroAdamOptimizerStepCount, test) {
  each("stage", kInitStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage);
      config.sub_group_size = 10;
      Engined engine = rank.engine(make_stack({.layers = 3}), config);
      for (int step = 0; step < 4; ++step) {
        run_engine(rank, engine, {.way = BackwardWay::managed}, {0, step, 0});
        if (!twin.has_fault("a step left out") || step > 0) engine->step();
        int counts = 0;
        for (const FullTensor& state : engine->full_optimizer_state()) {
          if (!state.name.ends_with("/step")) continue;
          ++counts;
          require_near(state.values.at(0), step + 1.0, 0.0, state.name);
        }
        require(counts == 6, "a step count for each parameter");
        require(engine->global_steps() == step + 1, "global_steps");
      }
    });
  });
}

PEER_ROW(TestZeroFrozenWeights, test) {
  const NetMaker make = []() -> ModulePtr {
    const auto frozen = linear_layer(4, 4, 2);
    freeze(*frozen);
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(4, 4, 1)},
                                {"frozen", frozen},
                                {"l2", linear_layer(4, 4, 3)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "frozen", tanh(ag, net.call(ag, "l0", in.at(0))));
          return {mse_loss(ag, net.call(ag, "l2", x), in.at(1))};
        });
  };
  each("stage", kInitStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      require_matches_ddp(rank, make, base_config(stage),
                          {.steps = 3, .way = BackwardWay::managed});
    });
  });
}

namespace {

std::int64_t elements_of(nn::Module& module) {
  std::int64_t elements = 0;
  for (const nn::NamedParameter& parameter : module.named_parameters())
    elements += parameter.tensor.numel();
  return elements;
}

}  // namespace

// Evaluation between training steps: a forward alone, without gradients, whose order differs.
PEER_ROW(TestZero3SwitchModes, test) {
  each("prefetch", std::array{0, 1, 2}, [&](int halves) {
    on_ranks(1, twin, [&](Rank& rank) {
      const NetMaker make = make_stack({.layers = 4});
      ZeroConfig config = base_config(3);
      config.stage3_prefetch_bucket_size = elements_of(*make()) * halves / 2;
      Engined engine = rank.engine(make, config);
      Ddp ddp(make, {.ranks = 1});
      int step = 0;
      for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 3; ++i, ++step) {
          const Place place{0, step, 0};
          run_engine(rank, engine, {.way = BackwardWay::managed}, place);
          run_reference(ddp, {}, config, place);
          require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(kZeroFloat),
                        "train");
          engine->step();
          ddp.step();
        }
        for (int i = 0; i < 2; ++i) {
          const GradMode off(rank.ag, false);
          const Place place{0, 100 + step, i};
          const double ours = engine->forward(batch_of(place, 4, kZeroFloat)).at(0).item();
          double theirs = 0.0;
          ddp.run([&](Autograd& ag, nn::Module& module, int) {
            const GradMode inner(ag, false);
            theirs = module(ag, batch_of(place, 4, kZeroFloat)).at(0).item();
          });
          require_near(ours, theirs, 1e-5, "evaluation");
          require_released(engine, "after an evaluation");
        }
      }
    });
  });
}

PEER_ROW(TestIncorectAllgatherBucketSize, test) {
  each("size", std::array{1000, 1001}, [&](int size) {
    ZeroConfig config = base_config(2);
    config.allgather_bucket_size = twin.has_fault("an even size") ? 1000 : size;
    const auto valid = validate(config);
    if (size == 1000) return require(valid.has_value(), "an even size is accepted");
    require(!valid && valid.error().text.starts_with("odd_allgather_bucket_size"),
            "an odd size is E11");
  });
}

PEER_ROW(TestZeroOffloadOptim, test) {
  each("forced", std::array{true, false}, [&](bool is_forced) {
    ZeroConfig config = base_config(1);
    config.offload_optimizer = OffloadDevice::cpu;
    config.optimizer.is_torch_class = !twin.has_fault("the CPU Adam");
    config.zero_force_ds_cpu_optimizer = is_forced;
    const auto valid = validate(config);
    if (!is_forced) return require(valid.has_value(), "another optimizer is accepted");
    require(!valid && valid.error().text.starts_with("offload_of_unsupported_optimizer"),
            "another optimizer is E16");
  });
}

PEER_ROW(TestZeroOffloadStage1, test) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = base_config(1);
    config.offload_optimizer = OffloadDevice::cpu;
    config.gradient_accumulation_steps = 2;
    require_matches_ddp(rank, make_stack({}), config,
                        {.steps = 3, .micro_batches = 2, .way = BackwardWay::managed});
  });
}

}  // namespace zeroproof::peer
