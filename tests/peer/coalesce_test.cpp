// tests/unit/v1/zero/test_zero_coalesce_grad_reduction.py.
#include <array>

#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kStages = {1, 2, 3};

// Layers side by side whose gradients are sums of their inputs: exact in every dtype and order,
// so that two ways to add them up have to give equal bits.
NetMaker make_sums(int layers = 2, std::int64_t width = 4) {
  return [layers, width]() -> ModulePtr {
    Net::Parts parts;
    for (int i = 0; i < layers; ++i)
      parts.children.emplace_back("l" + std::to_string(i),
                                  linear_layer(width, width, static_cast<std::uint64_t>(i)));
    return std::make_shared<Net>(
        parts, [layers](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          Tensor total;
          for (int i = 0; i < layers; ++i) {
            const Tensor part = sum(ag, net.call(ag, "l" + std::to_string(i), in.at(0)));
            total = total.is_defined() ? add(ag, total, part) : part;
          }
          return {total};
        });
  };
}

// Multiples of 1/4 in [-1, 1].
Loop exact_loop(DType dtype, std::int64_t width = 4) {
  Loop loop{.way = BackwardWay::managed};
  loop.inputs = [dtype, width](const Place& place) -> TensorList {
    std::vector<double> values;
    for (std::int64_t i = 0; i < width; ++i)
      values.push_back(0.25 * static_cast<double>(
                                  (i * 5 + place.rank * 3 + place.step * 7 + place.micro * 2) % 9) -
                       1.0);
    const Tensor x = Tensor::of(values, {1, width}, dtype);
    x.set_requires_grad(true);
    return {x};
  };
  return loop;
}

struct Windows {
  int steps = 1;
  int backwards = 4;
};

FullTensors run_plain(Rank& rank, const NetMaker& make, const ZeroConfig& config, const Loop& loop,
                      const Windows& windows) {
  Engined engine = rank.engine(make, config);
  for (int step = 0; step < windows.steps; ++step) {
    for (int micro = 0; micro < windows.backwards; ++micro) {
      engine->set_gradient_accumulation_boundary(micro + 1 == windows.backwards);
      run_engine(rank, engine, loop, {rank.rank(), step, micro});
    }
    engine->step();
  }
  return engine->full_parameters();
}

FullTensors run_coalesced(Rank& rank, const NetMaker& make, const ZeroConfig& config,
                          const Loop& loop, const Windows& windows) {
  Engined engine = rank.engine(make, config);
  for (int step = 0; step < windows.steps; ++step) {
    engine->coalesce_grad_reduction([&] {
      for (int micro = 0; micro < windows.backwards; ++micro)
        run_engine(rank, engine, loop, {rank.rank(), step, micro});
    });
    engine->step();
  }
  return engine->full_parameters();
}

FullTensors run_ddp(const NetMaker& make, const ZeroConfig& config, const Loop& loop,
                    const Windows& windows) {
  Ddp ddp(make, reference_of(2, config, {.max_norm = config.gradient_clipping}));
  for (int step = 0; step < windows.steps; ++step) {
    for (int micro = 0; micro < windows.backwards; ++micro)
      run_reference(ddp, loop, config, {0, step, micro});
    ddp.step();
  }
  return ddp.parameters();
}

// Equal to the plain path, and both to the reference.
void is_exact(Rank& rank, const ZeroConfig& config, const Windows& windows, double allowed = 1e-6,
              const NetMaker& make = make_sums(), std::int64_t width = 4) {
  const Loop loop = exact_loop(config.model_dtype(), width);
  const FullTensors plain = run_plain(rank, make, config, loop, windows);
  const FullTensors coalesced = run_coalesced(rank, make, config, loop, windows);
  require_near(max_difference(plain, coalesced), 0.0, allowed, "coalesced against plain");
  require_near(max_difference(coalesced, run_ddp(make, config, loop, windows)), 0.0, 1e-5,
               "coalesced against the reference");
}

ZeroConfig coalesce_config(int stage, DType dtype = DType::bfloat16) {
  ZeroConfig config = base_config(stage, dtype);
  config.contiguous_gradients = false;
  config.overlap_comm = false;
  return config;
}

}  // namespace

PEER_ROW(TestCoalesceCombinations, test_multi_backward_bit_exact) {
  each("stage", kStages, [&](int stage) {
    each("flags", std::array{0, 1, 2, 3}, [&](int flags) {
      on_ranks(2, twin, [&](Rank& rank) {
        ZeroConfig config = coalesce_config(stage);
        config.contiguous_gradients = (flags & 1) != 0;
        config.overlap_comm = (flags & 2) != 0;
        is_exact(rank, config, {});
      });
    });
  });
}

PEER_ROW(TestCoalesceBucketOverflow, test_multi_bucket_flush) {
  each("stage", kStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = coalesce_config(stage);
      config.contiguous_gradients = true;
      config.reduce_bucket_size = 8192;
      is_exact(rank, config, {}, 5e-6, make_sums(4, 64), 64);
    });
  });
}

PEER_ROW(TestCoalesceCpuOffload, test_cpu_offload_bit_exact) {
  each("case", std::array{1, 2, 3, 4}, [&](int which) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = coalesce_config(which == 4 ? 3 : which);
      config.contiguous_gradients = true;
      config.offload_optimizer = OffloadDevice::cpu;
      if (which == 4) config.offload_param = OffloadDevice::cpu;
      is_exact(rank, config, {});
    });
  });
}

PEER_ROW(TestCoalesceFP16, test_fp16_bit_exact) {
  each("stage", kStages, [&](int stage) {
    on_ranks(2, twin,
             [&](Rank& rank) { is_exact(rank, coalesce_config(stage, DType::float16), {}); });
  });
}

PEER_ROW(TestCoalesceCorrectness, test_multi_step_no_state_leak) {
  each("stage", kStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      is_exact(rank, coalesce_config(stage), {.steps = 3, .backwards = 3});
    });
  });
}

PEER_ROW(TestCoalesceCorrectness, test_gradient_clipping) {
  each("stage", kStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = coalesce_config(stage);
      config.gradient_clipping = 0.5;
      is_exact(rank, config, {.steps = 2, .backwards = 3});
    });
  });
}

PEER_ROW(TestCoalesceCorrectness, test_n1_inside_context) {
  each("stage", kStages, [&](int stage) {
    on_ranks(2, twin,
             [&](Rank& rank) { is_exact(rank, coalesce_config(stage), {.backwards = 1}); });
  });
}

namespace {

void with_float32_accumulation(const Twin& twin, int stage, bool is_offloaded) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = coalesce_config(stage);
    config.contiguous_gradients = true;
    config.grad_accum_dtype = DType::float32;
    if (is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
    is_exact(rank, config, {.steps = 2});
  });
}

}  // namespace

PEER_ROW(TestCoalesceGradAccumDtype, test_zero1_offload_bf16_fp32_grad_accum) {
  with_float32_accumulation(twin, 1, true);
}

PEER_ROW(TestCoalesceGradAccumDtype, test_zero2_bf16_fp32_grad_accum) {
  with_float32_accumulation(twin, 2, false);
}

// Upstream wraps stage 1 without offload into BF16_Optimizer, which cannot coalesce. Here only
// stage 0 is such a wrapper; stage 1 has to be exact.
PEER_ROW(TestCoalesceGradAccumDtype, test_zero1_no_offload_uses_bf16_optimizer) {
  with_float32_accumulation(twin, 1, false);
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = coalesce_config(0);
    config.grad_accum_dtype = DType::float32;
    Engined engine = rank.engine(make_sums(), config);
    require_throws([&] { engine->coalesce_grad_reduction([] {}); }, "optimizer wrapper");
  });
}

PEER_ROW(TestCoalesceZero3LeafModule, test_leaf_module_n1) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = coalesce_config(3);
    config.leaf_module.classes = {"Linear"};
    is_exact(rank, config, {.backwards = 1});
    // An input without a gradient is the error that it is outside (P77).
    Engined engine = rank.engine(make_sums(), config, {.id = EngineId{2}});
    const Tensor x = Tensor::full({1, 4}, 1.0, DType::bfloat16);
    require_throws(
        [&] { engine->coalesce_grad_reduction([&] { engine->backward(engine->forward(x)); }); },
        "gradient_of_wrong_size");
  });
}

namespace {

std::size_t gradient_collectives(const Recording& recording, std::size_t begin) {
  return recording.count_collectives("all_reduce", begin) +
         recording.count_collectives("reduce", begin) +
         recording.count_collectives("reduce_scatter", begin) +
         recording.count_collectives("reduce_scatter_tensor", begin);
}

}  // namespace

PEER_ROW(TestCoalesceCollectiveCount, test_coalesce_issues_fewer_collectives) {
  each("stage", std::array{2, 3}, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      const Loop loop = exact_loop(DType::bfloat16);
      Engined plain = rank.engine(make_sums(), coalesce_config(stage));
      std::size_t begin = rank.recording.events.size();
      for (int micro = 0; micro < 4; ++micro) {
        plain->set_gradient_accumulation_boundary(micro == 3);
        run_engine(rank, plain, loop, {rank.rank(), 0, micro});
      }
      const std::size_t of_plain = gradient_collectives(rank.recording, begin);
      Engined engine = rank.engine(make_sums(), coalesce_config(stage), {.id = EngineId{1}});
      begin = rank.recording.events.size();
      const auto body = [&] {
        for (int micro = 0; micro < 4; ++micro)
          run_engine(rank, engine, loop, {rank.rank(), 0, micro});
        require(twin.has_fault("no context") || gradient_collectives(rank.recording, begin) == 0,
                "nothing is reduced before the end");
      };
      if (twin.has_fault("no context")) {
        body();
      } else {
        engine->coalesce_grad_reduction(body);
      }
      const std::size_t of_coalesced = gradient_collectives(rank.recording, begin);
      require(of_plain > 0 && of_coalesced > 0, "gradients are reduced");
      require(of_coalesced < of_plain, "fewer collectives: " + std::to_string(of_coalesced) +
                                           " and " + std::to_string(of_plain));
    });
  });
}

// What the counter was for: each flush begins a window of its own, with one block's gradients.
PEER_ROW(TestCoalesceZero3MicroStepInvariant, test_micro_step_id_is_zero_at_flush) {
  on_ranks(2, twin, [&](Rank& rank) {
    const ZeroConfig config = coalesce_config(3);
    const Loop loop = exact_loop(DType::bfloat16);
    Engined engine = rank.engine(make_sums(), config);
    for (int step = 0; step < 3; ++step) {
      Ddp ddp(make_sums(), reference_of(2, config));
      engine->coalesce_grad_reduction([&] {
        for (int micro = 0; micro < 3; ++micro) {
          run_engine(rank, engine, loop, {rank.rank(), step, micro});
          run_reference(ddp, loop, config, {0, step, micro});
        }
      });
      require(engine->micro_steps() == step, "no micro-step is counted before step()");
      require_equal(engine->full_gradients(), ddp.gradients(), {},
                    "the gradients of block " + std::to_string(step));
      engine->step();
    }
  });
}

PEER_ROW(TestCoalesceZero3MicroStepInvariant,
         test_zero3_multi_step_diff_under_corruption_threshold) {
  on_ranks(2, twin,
           [&](Rank& rank) { is_exact(rank, coalesce_config(3), {.steps = 3, .backwards = 4}); });
}

PEER_ROW(TestCoalesceFailureModes, test_step_inside_context_raises) {
  each("stage", kStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_sums(), coalesce_config(stage));
      const auto body = [&] {
        run_engine(rank, engine, exact_loop(DType::bfloat16), {0, 0, 0});
        require_throws([&] { engine->step(); }, "step_inside_no_sync");
      };
      if (twin.has_fault("no context")) return body();
      engine->coalesce_grad_reduction(body);
      require(engine->step().is_applied, "step() works behind the context");
    });
  });
}

PEER_ROW(TestCoalesceFailureModes, test_existing_no_sync_still_blocked_for_zero2) {
  on_ranks(1, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_sums(), coalesce_config(twin.has_fault("stage 1") ? 1 : 2));
    require_throws([&] { engine->no_sync([] {}); }, "no_sync_not_allowed");
    require_throws([&] { engine->no_sync([] {}); }, "ZeRO stage");
  });
}

PEER_ROW(TestCoalesceFailureModes, test_nested_no_sync_outer_coalesce_grad_reduction) {
  on_ranks(1, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_sums(), coalesce_config(1));
    const auto body = [&] { require_throws([&] { engine->no_sync([] {}); }, "no_sync"); };
    if (twin.has_fault("no context")) return body();
    engine->coalesce_grad_reduction(body);
    engine->no_sync([] {});
  });
}

PEER_ROW(TestCoalesceFailureModes, test_nested_coalesce_grad_reduction_inside_no_sync) {
  on_ranks(1, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_sums(), coalesce_config(1));
    const auto body = [&] {
      require_throws([&] { engine->coalesce_grad_reduction([] {}); }, "nested");
    };
    if (twin.has_fault("no context")) return body();
    engine->no_sync(body);
    engine->coalesce_grad_reduction([] {});
  });
}

// Inside the block no gradient has been reduced: what a rank sees of a gradient is its own.
PEER_ROW(TestCoalesceDocumentedBehaviors, test_safe_get_full_grad_returns_local_pre_reduce_value) {
  each("stage", kStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      const ZeroConfig config = coalesce_config(stage);
      const Loop loop = exact_loop(DType::bfloat16);
      Engined engine = rank.engine(make_sums(), config);
      Ddp own(make_sums(), reference_of(1, config));
      const auto body = [&] {
        run_engine(rank, engine, loop, {rank.rank(), 0, 0});
        Loop here = loop;
        here.inputs = [&](const Place&) { return loop.inputs({rank.rank(), 0, 0}); };
        run_reference(own, here, config, {0, 0, 0});
        require_equal(engine->full_gradients(), own.gradients(), {}, "the rank's own gradients");
      };
      if (twin.has_fault("no context")) return body();
      engine->coalesce_grad_reduction(body);
    });
  });
}

PEER_ROW(TestCoalesceDocumentedBehaviors, test_engine_boundary_restored_and_step_works_on_exit) {
  each("stage", kStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_sums(), coalesce_config(stage));
      engine->set_gradient_accumulation_boundary(twin.has_fault("a boundary before"));
      require_throws([&] { engine->coalesce_grad_reduction([] { throw Failed("from inside"); }); },
                     "from inside");
      require(!engine->is_gradient_accumulation_boundary(), "restored after an exception");
      engine->coalesce_grad_reduction([&] {
        run_engine(rank, engine, exact_loop(DType::bfloat16), {rank.rank(), 0, 0});
      });
      require(!engine->is_gradient_accumulation_boundary(), "restored");
      engine->step();
      require(engine->global_steps() == 0, "no boundary, no step");
      engine->set_gradient_accumulation_boundary(true);
      engine->step();
      require(engine->global_steps() == 1, "an explicit boundary, a step");
    });
  });
}

}  // namespace zeroproof::peer
