// test_zero2_offload_multi_backward.py, test_zero_cpu_offload_grad_accum.py,
// test_ignore_unused_parameters.py: optimizer state and accumulators on the CPU.
#include <array>
#include <cmath>

#include "model/functions/losses.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kOffloadStages = {1, 2, 3};

ZeroConfig offload_config(int stage, bool is_offloaded) {
  ZeroConfig config = base_config(stage);
  config.contiguous_gradients = true;
  if (is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
  return config;
}

struct OffloadWindows {
  int steps = 1;
  int backwards = 4;
};

// Several backwards a step, the last one at an explicit boundary.
FullTensors run_windows(Rank& rank, const ZeroConfig& config, const OffloadWindows& windows) {
  Engined engine = rank.engine(make_stack({.width = 4, .layers = 2}), config);
  for (int step = 0; step < windows.steps; ++step) {
    for (int micro = 0; micro < windows.backwards; ++micro) {
      engine->set_gradient_accumulation_boundary(micro + 1 == windows.backwards);
      run_engine(rank, engine, {.way = BackwardWay::managed}, {rank.rank(), step, micro});
    }
    engine->step();
  }
  return engine->full_parameters();
}

void equals_no_offload(const Twin& twin, const OffloadWindows& windows) {
  each("stage", kOffloadStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      const FullTensors ours = run_windows(rank, offload_config(stage, true), windows);
      require_near(max_difference(ours, run_windows(rank, offload_config(stage, false), windows)),
                   0.0, 5e-5, "with and without offload");
      Ddp ddp(make_stack({}), {.ranks = 1});
      for (int step = 0; step < windows.steps; ++step) {
        for (int micro = 0; micro < windows.backwards; ++micro)
          run_reference(ddp, {}, base_config(stage), {0, step, micro});
        ddp.step();
      }
      require_equal(ours, ddp.parameters(), tolerance_of(DType::float32), "the reference");
    });
  });
}

}  // namespace

PEER_ROW(TestZeroOffloadMultiBackward, test_multi_backward_matches_no_offload) {
  equals_no_offload(twin, {.backwards = 4});
}

PEER_ROW(TestZeroOffloadMultiBackward, test_single_backward_unchanged) {
  equals_no_offload(twin, {.backwards = 1});
}

PEER_ROW(TestZeroOffloadMultiBackward, test_multi_backward_across_multiple_steps) {
  equals_no_offload(twin, {.steps = 3, .backwards = 3});
}

// Upstream counts the entries of its accumulator. Here what is on the host must not grow with a
// lone backward: the sum of the window is the only accumulator, and it is there from the start.
PEER_ROW(TestZeroOffloadMultiBackward, test_single_backward_allocates_no_cpu_accumulator) {
  each("stage", kOffloadStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_stack({}), offload_config(stage, true));
      const auto live = [&] { return rank.runtime.memory().stats(Placement::host).live_bytes; };
      run_engine(rank, engine, {.way = BackwardWay::managed}, {0, 0, 0});
      engine->step();
      const std::int64_t before = live();
      Tensor extra;
      if (twin.has_fault("an accumulator too many"))
        extra = rank.runtime.memory().allocate(40, DType::float32, Placement::host);
      run_engine(rank, engine, {.way = BackwardWay::managed}, {0, 1, 0});
      require(live() == before, "a lone backward adds nothing on the host");
    });
  });
}

PEER_ROW(TestZeroOffloadMultiBackward, test_ga_greater_than_one_offload_unchanged) {
  each("stage", kOffloadStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      FullTensors results[2];
      for (const bool is_offloaded : {false, true}) {
        ZeroConfig config = offload_config(stage, is_offloaded);
        config.gradient_accumulation_steps = 4;
        results[is_offloaded ? 1 : 0] =
            train(rank, make_stack({}), config,
                  {.steps = 2, .micro_batches = 4, .way = BackwardWay::managed});
      }
      require_near(max_difference(results[0], results[1]), 0.0, 5e-5, "with and without");
    });
  });
  each("stage", kOffloadStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      ZeroConfig config = offload_config(stage, true);
      config.gradient_accumulation_steps = 4;
      require_matches_ddp(rank, make_stack({}), config, {.steps = 2, .micro_batches = 4});
    });
  });
}

PEER_ROW(TestZero2CPUOffloadGradAccumNorm, test) {
  on_ranks(1, twin, [&](Rank& rank) {
    ZeroConfig config = offload_config(2, true);
    config.gradient_accumulation_steps = 4;
    Engined engine = rank.engine(make_stack({}), config);
    double before = 0.0;
    for (int micro = 0; micro < 3; ++micro) {
      run_engine(rank, engine, {.way = BackwardWay::managed}, {0, 0, micro});
      double squares = 0.0;
      for (const FullTensor& gradient : engine->full_gradients())
        for (const double value : gradient.values) squares += value * value;
      require(squares > 0.0, "there is an accumulated gradient");
      require(std::abs(squares - before) > 1e-9, "every micro-batch changes it");
      before = squares;
    }
  });
}

namespace {

// l1 takes part when the third input says so.
NetMaker make_optional() {
  return []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(4, 4, 1)}, {"unused", linear_layer(4, 4, 2)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {mse_loss(ag, net.call(ag, "l0", in.at(0)), in.at(1))};
        });
  };
}

}  // namespace

PEER_ROW(TestStage2IgnoreUnusedParameters, test) {
  each("ignored", std::array{true, false}, [&](bool is_ignored) {
    on_ranks(1, twin, [&](Rank& rank) {
      ZeroConfig config = offload_config(2, true);
      config.gradient_accumulation_steps = 2;
      config.ignore_unused_parameters = is_ignored || twin.has_fault("it is ignored");
      const auto run = [&] {
        train(rank, make_optional(), config,
              {.steps = 2, .micro_batches = 2, .way = BackwardWay::managed});
      };
      if (is_ignored) return run();
      require_throws(run, "offloaded_parameter_without_gradient");
    });
  });
}

}  // namespace zeroproof::peer
