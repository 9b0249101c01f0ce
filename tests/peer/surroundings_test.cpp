// Rows of tier 2: autocast, initial values, clipping, access to whole states.
#include <array>
#include <cmath>

#include "model/autocast/autocast.h"
#include "model/functions/losses.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kAllStages = {0, 1, 2, 3};

NetMaker make_normed() {
  return []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(4, 4, 1)},
                                {"norm", norm_layer(4, 2)},
                                {"l1", linear_layer(4, 4, 3)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "norm", net.call(ag, "l0", in.at(0)));
          return {mse_loss(ag, to(ag, net.call(ag, "l1", x), DType::float32), in.at(1))};
        });
  };
}

void require_communication_dtypes(Engined& engine, DType of_linear) {
  for (const ZeroParameter& parameter : engine.core().context().parameters)
    require(parameter.communication_dtype ==
                (parameter.name.starts_with("norm") ? DType::float32 : of_linear),
            "communication dtype of " + parameter.name);
}

void trains_under_autocast(const Twin& twin, const std::optional<std::vector<std::string>>& safe) {
  each("stage", kAllStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage);
      config.torch_autocast.enabled = true;
      config.torch_autocast.lower_precision_safe_modules = safe;
      if (twin.has_fault("no safe modules"))
        config.torch_autocast.lower_precision_safe_modules.emplace();
      Engined engine = rank.engine(make_normed(), config);
      require_communication_dtypes(engine, DType::bfloat16);
      Ddp ddp(make_normed(), {});
      for (int step = 0; step < 5; ++step) {
        const Place place{rank.rank(), step, 0};
        const Tensor loss = engine->forward(batch_of(place, 4, DType::float32)).at(0);
        double expected = 0.0;
        ddp.run([&](Autograd& ag, nn::Module& module, int r) {
          const Tensor theirs = [&] {
            const Autocast region(ag, DeviceType::cpu);
            return module(ag, batch_of({r, step, 0}, 4, DType::float32)).at(0);
          }();
          if (r == rank.rank()) expected = theirs.item();
          ag.backward(theirs);
        });
        if (step < 2) require_near(loss.item(), expected, 2e-2, "loss");
        engine->backward(loss);
        if (step == 0)
          require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(DType::bfloat16),
                        "gradients");
        engine->step();
        ddp.step();
      }
    });
  });
}

}  // namespace

PEER_ROW(TestZeroAutoCast, test) {
  trains_under_autocast(twin, std::nullopt);
}

PEER_ROW(TestZeroAutoCast, test_safe_modules_conf) {
  trains_under_autocast(twin, std::vector<std::string>{"torch.nn.Linear"});
}

PEER_ROW(TestZeroAutoCast, test_nested_autocast) {
  each("stage", kAllStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage);
      config.torch_autocast.enabled = twin.has_fault("the engine's own autocast");
      Engined engine = rank.engine(make_normed(), config);
      require_communication_dtypes(engine, DType::float32);
      const Place place{rank.rank(), 0, 0};
      const Tensor loss = [&] {
        const Autocast region(rank.ag, DeviceType::cpu);
        return engine->forward(batch_of(place, 4, DType::float32)).at(0);
      }();
      CpuOps ops;
      Autograd bare(ops);
      const Tensor plain = (*make_normed()())(bare, batch_of(place, 4, DType::float32)).at(0);
      require_near(loss.item(), plain.item(), 1e-6, "autocast is off inside the engine");
      engine->backward(loss);
      engine->step();
    });
  });
}

PEER_ROW(TestZero3InitForParentWeightInitialization, test) {
  on_ranks(2, twin, [&](Rank& rank) {
    const NetMaker make = [&]() -> ModulePtr {
      const Tensor weight = Tensor::full({3, 4}, 1.0 + rank.rank(), DType::float32);
      weight.set_requires_grad(true);
      return std::make_shared<Net>(
          Net::Parts{.parameters = {{"weight", weight}}},
          [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
            return {mul(ag, in.at(0), net.parameter("weight"))};
          });
    };
    Engined engine = rank.engine(make, base_config(3));
    require(engine.partitioned("weight").slice_elements() == 6, "6 of 12 elements");
    for (const double value : engine.partitioned("weight").slice().values())
      require(value == 1.0, "rank 0's values everywhere");
  });
}

PEER_ROW(TestZeroGradClip, test_grad_clip_and_norm_update) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
    each("offload", std::array{false, true}, [&](bool is_offloaded) {
      on_ranks(1, twin, [&](Rank& rank) {
        ZeroConfig config = base_config(3, dtype);
        config.gradient_clipping = 0.01;
        if (is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
        config.optimizer.type = OptimizerType::sgd;
        config.zero_force_ds_cpu_optimizer = false;
        config.optimizer.sgd.lr = 1.0;
        Engined engine = rank.engine(make_stack({}), config);
        const FullTensors before = engine->full_parameters();
        run_engine(rank, engine, {.way = BackwardWay::managed}, {0, 0, 0});
        double squares = 0.0;
        for (const FullTensor& gradient : engine->full_gradients())
          for (const double value : gradient.values) squares += value * value;
        const StepOutcome outcome = engine->step();
        require(outcome.grad_norm.has_value(), "a norm is reported");
        require_near(*outcome.grad_norm, std::sqrt(squares), 1e-5, "the norm before clipping");
        require(squares > 1e-4, "there is something to clip");
        double moved = 0.0;
        const FullTensors after = engine->full_parameters();
        for (std::size_t i = 0; i < after.size(); ++i)
          for (std::size_t j = 0; j < after[i].values.size(); ++j)
            moved += std::pow(after[i].values[j] - before[i].values[j], 2.0);
        require_near(std::sqrt(moved), 0.01, 1e-5, "the norm of the clipped update");
      });
    });
}

namespace {

void reads_all_states(Rank& rank, const ZeroConfig& config) {
  const NetMaker make = []() -> ModulePtr {
    const auto frozen = linear_layer(4, 4, 2);
    freeze(*frozen);
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(4, 4, 1)}, {"frozen", frozen}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "frozen", net.call(ag, "l0", in.at(0)));
          return {mse_loss(ag, x, in.at(1))};
        });
  };
  Engined engine = rank.engine(make, config);
  for (int step = 0; step < 2; ++step) {
    run_engine(rank, engine, {.way = BackwardWay::managed}, {rank.rank(), step, 0});
    const FullTensors gradients = engine->full_gradients();
    for (const std::string& name : {std::string("l0.weight"), std::string("l0.bias")})
      require(has_values({find(gradients, name)}), "a gradient of " + name);
    for (const FullTensor& gradient : gradients)
      require(!gradient.name.starts_with("frozen") || gradient.values.empty(), "none if frozen");
    engine->step();
    const FullTensors states = engine->full_optimizer_state();
    for (const char* name : {"l0.weight/exp_avg", "l0.weight/exp_avg_sq", "l0.bias/exp_avg"})
      require(has_values({find(states, name)}), name);
    for (const FullTensor& state : states)
      require(!state.name.starts_with("frozen"), "no state of what is frozen");
    require(find(engine->full_parameters(), "l0.weight").values.size() == 16, "a whole master");
  }
}

}  // namespace

PEER_ROW(TestTensorFragmentGet, test_zero_fragments) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16})
    each("stage", std::array{1, 2, 3}, [&](int stage) {
      each("offload", std::array{false, true}, [&](bool is_offloaded) {
        on_ranks(2, twin, [&](Rank& rank) {
          ZeroConfig config = base_config(stage, dtype);
          if (is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
          reads_all_states(rank, config);
        });
      });
    });
}

PEER_ROW(TestTensorFragmentGet, test_bf16_optimizer_fragments) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = base_config(0, DType::bfloat16);
    config.grad_accum_dtype = DType::float32;
    reads_all_states(rank, config);
  });
}

}  // namespace zeroproof::peer
