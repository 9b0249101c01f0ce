// tests/unit/v1/zero/test_zero_user_backward.py: managed_gradient_accumulation: false.
#include <array>

#include "model/functions/losses.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kUnmanagedStages = {0, 1, 2, 3};
constexpr std::array kZeroStages = {1, 2, 3};

ZeroConfig windows_of(int stage, int gas, bool is_managed) {
  ZeroConfig config = base_config(stage);
  config.gradient_accumulation_steps = gas;
  config.managed_gradient_accumulation = is_managed;
  return config;
}

// Three windows of `gas`: managed, step() after every micro-batch; unmanaged, once a window.
FullTensors run_windows(Rank& rank, const ZeroConfig& config, int windows,
                        const NetMaker& make = make_stack({})) {
  Engined engine = rank.engine(make, config);
  for (int window = 0; window < windows; ++window) {
    for (int micro = 0; micro < config.gradient_accumulation_steps; ++micro) {
      run_engine(rank, engine, {.way = BackwardWay::managed}, {rank.rank(), window, micro});
      if (config.managed_gradient_accumulation) engine->step();
    }
    if (!config.managed_gradient_accumulation) engine->step();
    require(engine->global_steps() == window + 1, "global_steps after a window");
  }
  return engine->full_parameters();
}

FullTensors reference_windows(const ZeroConfig& config, int windows,
                              const NetMaker& make = make_stack({})) {
  Ddp ddp(make, {});
  for (int window = 0; window < windows; ++window) {
    for (int micro = 0; micro < config.gradient_accumulation_steps; ++micro)
      run_reference(ddp, {}, config, {0, window, micro});
    ddp.step();
  }
  return ddp.parameters();
}

void unmanaged_matches_managed(const Twin& twin, ZeroConfig config, int windows = 3) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig managed = config;
    managed.managed_gradient_accumulation = true;
    ZeroConfig unmanaged = config;
    unmanaged.managed_gradient_accumulation = false;
    const FullTensors a = run_windows(rank, managed, windows);
    const FullTensors b = run_windows(rank, unmanaged, windows);
    require_equal(b, a, tolerance_of(DType::float32), "unmanaged against managed");
    require_equal(b, reference_windows(config, windows), tolerance_of(DType::float32),
                  "against the reference");
  });
}

}  // namespace

PEER_ROW(TestUnmanagedGradientAccumulation, test_unmanaged_matches_managed) {
  each("stage", kUnmanagedStages,
       [&](int stage) { unmanaged_matches_managed(twin, windows_of(stage, 4, false)); });
}

PEER_ROW(TestUnmanagedGradientAccumulation, test_step_always_applies_update) {
  each("stage", kUnmanagedStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_stack({}), windows_of(stage, 4, false));
      for (int step = 0; step < 4; ++step) {
        const FullTensors before = engine->full_parameters();
        run_engine(rank, engine, {.way = BackwardWay::managed}, {rank.rank(), step, 0});
        require(engine->step().is_applied, "every step is applied");
        require(engine->global_steps() == step + 1, "global_steps");
        require(max_difference(before, engine->full_parameters()) > 1e-4, "nothing has changed");
      }
    });
  });
}

PEER_ROW(TestUnmanagedGradientAccumulation, test_managed_baseline_applies_only_on_boundary) {
  each("stage", kUnmanagedStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_stack({}), windows_of(stage, 4, true));
      for (int step = 0; step < 8; ++step) {
        const FullTensors before = engine->full_parameters();
        run_engine(rank, engine, {.way = BackwardWay::managed}, {rank.rank(), step, 0});
        const bool is_boundary = step % 4 == 3;
        require(engine->step().is_applied == is_boundary, "applied at boundaries alone");
        require((max_difference(before, engine->full_parameters()) > 1e-4) == is_boundary,
                "parameters change at boundaries alone");
      }
    });
  });
}

PEER_ROW(TestUnmanagedGradientAccumulation, test_set_gradient_accumulation_boundary_rejected) {
  each("stage", kUnmanagedStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      const bool is_managed = twin.has_fault("a managed engine");
      Engined engine = rank.engine(make_stack({}), windows_of(stage, 4, is_managed));
      require_throws([&] { engine->set_gradient_accumulation_boundary(true); },
                     "boundary_set_in_unmanaged_accumulation");
    });
  });
}

// Windows of 2, 5 and 3 with losses divided by hand.
PEER_ROW(TestUnmanagedGradientAccumulation, test_unmanaged_varying_backward_count) {
  each("stage", kUnmanagedStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined managed = rank.engine(make_stack({}), windows_of(stage, 1, true));
      Engined unmanaged =
          rank.engine(make_stack({}), windows_of(stage, 1, false), {.id = EngineId{1}});
      Ddp ddp(make_stack({}), {});
      int backwards = 0;
      for (const int count : {2, 5, 3}) {
        Loop loop{.way = BackwardWay::managed, .scale_wrt_gas = false};
        loop.loss = [count](Autograd& ag, const TensorList& outputs, const Place&) {
          return div(ag, outputs.at(0), static_cast<double>(count));
        };
        for (int micro = 0; micro < count; ++micro) {
          const Place place{rank.rank(), count, micro};
          managed->set_gradient_accumulation_boundary(micro + 1 == count);
          run_engine(rank, managed, loop, place);
          managed->step();
          run_engine(rank, unmanaged, loop, place);
          run_reference(ddp, loop, managed->config(), place);
        }
        unmanaged->step();
        ddp.step();
        backwards += count;
        require(unmanaged->global_samples() == 2 * backwards, "global_samples");
      }
      require_equal(unmanaged->full_parameters(), managed->full_parameters(),
                    tolerance_of(DType::float32), "unmanaged against managed");
      require_equal(unmanaged->full_parameters(), ddp.parameters(), tolerance_of(DType::float32),
                    "against the reference");
    });
  });
}

PEER_ROW(TestUnmanagedGradientAccumulationOffload,
         test_unmanaged_matches_managed_optimizer_offload) {
  each("stage", kZeroStages, [&](int stage) {
    ZeroConfig config = windows_of(stage, 4, false);
    config.offload_optimizer = OffloadDevice::cpu;
    unmanaged_matches_managed(twin, config);
  });
}

PEER_ROW(TestUnmanagedGradientAccumulationParamOffload,
         test_unmanaged_matches_managed_param_offload) {
  ZeroConfig config = windows_of(3, 4, false);
  config.offload_optimizer = OffloadDevice::cpu;
  config.offload_param = OffloadDevice::cpu;
  unmanaged_matches_managed(twin, config, 2);
}

PEER_ROW(TestUnmanagedGradientAccumulationOverlapCommStage2,
         test_unmanaged_matches_managed_overlap_comm) {
  ZeroConfig config = windows_of(2, 4, false);
  config.overlap_comm = true;
  config.contiguous_gradients = true;
  config.reduce_bucket_size = 30;
  unmanaged_matches_managed(twin, config);
}

PEER_ROW(TestUnmanagedGradientAccumulationOverlapCommValidation,
         test_unmanaged_rejects_overlap_comm) {
  each("stage", std::array{0, 1}, [&](int stage) {
    ZeroConfig config = windows_of(stage, 2, twin.has_fault("a managed engine"));
    config.overlap_comm = true;
    const auto valid = validate(config);
    require(!valid && valid.error().text.find("unsupported_combination") == 0,
            "unsupported_combination");
  });
}

PEER_ROW(TestUnmanagedGradientAccumulationValidation,
         test_unmanaged_accepts_disabled_offload_blocks) {
  const std::string device = twin.has_fault("an unknown device") ? "disk" : "none";
  const auto parsed = parse_ds_config(
      R"({"managed_gradient_accumulation": false, "train_micro_batch_size_per_gpu": 1,
          "zero_optimization": {"stage": 3, "offload_optimizer": {"device": ")" +
          device + R"("}, "offload_param": {"device": "none"}}})",
      "ds_config.json");
  require(parsed.has_value(), "the document is refused");
  require(validate(parsed->config).has_value(), "the configuration is refused");
  require(!parsed->config.managed_gradient_accumulation, "it is unmanaged");
  on_ranks(1, twin, [&](Rank& rank) { rank.engine(make_stack({}), parsed->config); });
}

PEER_ROW(TestUnmanagedGradientAccumulationCoalesceValidation,
         test_unmanaged_rejects_coalesce_grad_reduction) {
  each("stage", std::array{2, 3}, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      Engined engine =
          rank.engine(make_stack({}), windows_of(stage, 2, twin.has_fault("a managed engine")));
      require_throws([&] { engine->coalesce_grad_reduction([] {}); }, "coalesce_grad_reduction");
    });
  });
}

namespace {

// Two heads, one of which is active in a window.
NetMaker make_heads() {
  return []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"trunk", linear_layer(4, 4, 1)},
                                {"a", linear_layer(4, 4, 2)},
                                {"b", linear_layer(4, 4, 3)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = tanh(ag, net.call(ag, "trunk", in.at(0)));
          const bool is_first = in.at(2).item() > 0.5;
          return {mse_loss(ag, net.call(ag, is_first ? "a" : "b", x), in.at(1))};
        });
  };
}

FullTensors run_heads(Rank& rank, const ZeroConfig& config) {
  Engined engine = rank.engine(make_heads(), config);
  for (int window = 0; window < 3; ++window) {
    for (int micro = 0; micro < 2; ++micro) {
      Loop loop{.way = BackwardWay::managed};
      loop.inputs = [](const Place& place) {
        TensorList inputs = batch_of(place, 4, DType::float32);
        inputs.push_back(Tensor::full({}, place.step == 1 ? 0.0 : 1.0, DType::float32));
        return inputs;
      };
      run_engine(rank, engine, loop, {rank.rank(), window, micro});
      if (config.managed_gradient_accumulation) engine->step();
    }
    if (!config.managed_gradient_accumulation) engine->step();
  }
  return engine->full_parameters();
}

FullTensors reference_heads(const ZeroConfig& config) {
  Ddp ddp(make_heads(), {});
  for (int window = 0; window < 3; ++window) {
    for (int micro = 0; micro < 2; ++micro) {
      Loop loop;
      loop.inputs = [](const Place& place) {
        TensorList inputs = batch_of(place, 4, DType::float32);
        inputs.push_back(Tensor::full({}, place.step == 1 ? 0.0 : 1.0, DType::float32));
        return inputs;
      };
      run_reference(ddp, loop, config, {0, window, micro});
    }
    ddp.step();
  }
  return ddp.parameters();
}

}  // namespace

// Upstream's managed and unmanaged runs share H15 and H16, so that it compares them in vain; here
// both have to equal the reference.
PEER_ROW(TestUnmanagedGradientAccumulationOffloadInactiveParams,
         test_unmanaged_matches_managed_inactive_params) {
  each("stage", kZeroStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig managed = windows_of(stage, 2, true);
      managed.offload_optimizer = OffloadDevice::cpu;
      ZeroConfig unmanaged = managed;
      unmanaged.managed_gradient_accumulation = false;
      const FullTensors a = run_heads(rank, managed);
      require_equal(run_heads(rank, unmanaged), a, tolerance_of(DType::float32), "both");
      require_equal(a, reference_heads(managed), tolerance_of(DType::float32), "the reference");
    });
  });
}

}  // namespace zeroproof::peer
