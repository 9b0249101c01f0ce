// Tests that exist on upstream's branches alone (tests/peer/upstream_tests.md): #8245 and #8135.
#include <array>

#include "tests/peer/support/probe.h"
#include "tests/peer/support/training.h"
#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof::peer {
namespace {

constexpr DType kBranchFloat = DType::float32;

ZeroConfig gas2(int stage) {
  ZeroConfig config = base_config(stage);
  config.gradient_accumulation_steps = 2;
  return config;
}

Tensor mean_square(Autograd& ag, const Tensor& x) {
  return mean(ag, sq(ag, x));
}

// Two micro-batches of an engine and of the reference, each a loss of the model in whatever form.
using LossOf = std::function<Tensor(Autograd&, const std::function<Tensor(const Tensor&)>& engine,
                                    nn::Module& module, const Tensor& x)>;

void branches_match_reference(const Twin& twin, const LossOf& loss_of) {
  each("stage", std::array{1, 2, 3}, [&](int stage) {
    each("managed", std::array{false, true}, [&](bool is_managed) {
      on_ranks(2, twin, [&](Rank& rank) {
        const NetMaker make = make_stack({.has_loss = false});
        Engined engine = rank.engine(make, gas2(stage));
        Ddp ddp(make, {});
        for (int micro = 0; micro < 2; ++micro) {
          const auto x = [micro](int r) { return batch_of({r, 0, micro}, 4, kBranchFloat).at(0); };
          const Tensor loss = loss_of(
              rank.ag, [&](const Tensor& in) { return engine->forward(in); }, engine.module(),
              x(rank.rank()));
          if (is_managed) {
            engine->backward(loss);
          } else {
            rank.ag.backward(loss);
          }
          ddp.run([&](Autograd& ag, nn::Module& module, int r) {
            ag.backward(div(ag,
                            loss_of(
                                ag, [&](const Tensor& in) { return module(ag, in); }, module, x(r)),
                            2.0));
          });
          if (micro == 0) engine->step();
        }
        require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(kBranchFloat),
                      "one factor along every path");
      });
    });
  });
}

}  // namespace

PEER_ROW(test_zero_shared_loss_gradient, test_engine_and_module_branches_match_manual_reference) {
  branches_match_reference(
      twin, [](Autograd& ag, const auto& engine, nn::Module& module, const Tensor& x) {
        return add(ag, mean_square(ag, engine(x)), mean_square(ag, module(ag, x)));
      });
}

PEER_ROW(test_zero_shared_loss_gradient,
         test_reentrant_checkpointed_engine_branches_are_scaled_once) {
  branches_match_reference(
      twin, [](Autograd& ag, const auto& engine, nn::Module& module, const Tensor& x) {
        x.set_requires_grad(true);
        const Tensor y = checkpoint(ag, CheckpointKind::reentrant,
                                    [&ag, &module](const TensorList& inner) -> TensorList {
                                      return {module(ag, inner.at(0))};
                                    },
                                    {x})
                             .at(0);
        return add(ag, mean_square(ag, engine(x)), mean_square(ag, y));
      });
}

PEER_ROW(test_zero_shared_loss_gradient, test_two_engine_managed_backward_scales_each_branch_once) {
  each("stage", std::array{1, 2, 3}, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      const NetMaker first = make_stack({.has_loss = false}, 1);
      const NetMaker second = make_stack({.has_loss = false}, 7);
      Engined a = rank.engine(first, gas2(stage));
      Engined b = rank.engine(second, gas2(stage), {.id = EngineId{1}});
      const NetMaker both = [&]() -> ModulePtr {
        return std::make_shared<Net>(
            Net::Parts{.children = {{"a", first()}, {"b", second()}}},
            [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
              return {net.call(ag, "b", net.call(ag, "a", in.at(0)))};
            });
      };
      Ddp ddp(both, {});
      for (int micro = 0; micro < 2; ++micro) {
        const Loop loop{.loss = [](Autograd& ag, const TensorList& out, const Place&) {
          return mean_square(ag, out.at(0));
        }};
        const Tensor x = batch_of({rank.rank(), 0, micro}, 4, kBranchFloat).at(0);
        b->backward(mean_square(rank.ag, b->forward(a->forward(x))));
        run_reference(ddp, loop, gas2(stage), {0, 0, micro});
        if (micro == 0) {
          a->step();
          b->step();
        }
      }
      FullTensors all;
      for (const auto& [name, engine] : {std::pair{"a.", &a}, std::pair{"b.", &b}})
        for (FullTensor gradient : (**engine).full_gradients()) {
          gradient.name = name + gradient.name;
          all.push_back(std::move(gradient));
        }
      require_equal(all, ddp.gradients(), tolerance_of(kBranchFloat), "one factor each");
    });
  });
}

// --- aborted backwards ---------------------------------------------------------------------------

namespace {

// Three layers; the backward throws once, when all but the first layer have their gradients.
NetMaker make_failing(const std::shared_ptr<bool>& is_armed, const std::string& last) {
  return [is_armed, last]() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(4, 4, 1)},
                                {"l1", linear_layer(4, 4, 2)},
                                {last, linear_layer(4, 4, 3)}}},
        [is_armed, last](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = probe(ag, tanh(ag, net.call(ag, "l0", in.at(0))), [is_armed] {
            if (std::exchange(*is_armed, false)) throw Failed("aborted");
          });
          return {mean_square(ag, net.call(ag, last, tanh(ag, net.call(ag, "l1", x))))};
        });
  };
}

struct Abort {
  BackwardWay way = BackwardWay::managed;
  int micro_batches_before = 0;  // complete ones, in the same window
  bool is_coalesced = false;
};

// The window with the aborted backward tried again has the gradients of one without.
void retry_matches_clean_control(Rank& rank, const ZeroConfig& config, const Abort& is) {
  const auto armed = std::make_shared<bool>(false);
  std::string last = "l2";
  if (config.leaf_module.names == std::vector<std::string>{"leaf"}) last = "leaf";
  const NetMaker make = make_failing(armed, last);
  Engined engine = rank.engine(make, config);
  Ddp ddp(make, reference_of(rank.ranks(), config));
  const Loop loop{.way = is.way};
  const auto body = [&] {
    for (int micro = 0; micro <= is.micro_batches_before; ++micro) {
      const bool is_last = micro == is.micro_batches_before;
      const Place place{rank.rank(), 0, micro};
      if (is_last) {
        *armed = true;
        require_throws([&] { run_engine(rank, engine, loop, place); }, "aborted");
        require(engine->hook_state().active_depth == 0, "no backward is open (P12)");
      }
      run_engine(rank, engine, loop, place);
      run_reference(ddp, loop, config, place);
      if (!is_last && !is.is_coalesced) engine->step();
    }
  };
  if (is.is_coalesced) {
    engine->coalesce_grad_reduction(body);
  } else {
    body();
  }
  require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(config.model_dtype()),
                "the retry");
  require(engine->step().is_applied, "the step");
}

void retries(
    const Twin& twin, const std::vector<int>& stages, const Abort& is,
    const std::function<void(ZeroConfig&)>& set = [](ZeroConfig&) {}, DType dtype = kBranchFloat) {
  each("stage", stages, [&](int stage) {
    for (const BackwardWay way : {BackwardWay::managed, BackwardWay::manual}) {
      if (stage == 0 && way == BackwardWay::manual) continue;  // E1
      on_ranks(2, twin, [&](Rank& rank) {
        ZeroConfig config = base_config(stage, dtype);
        config.gradient_accumulation_steps = is.is_coalesced ? 1 : is.micro_batches_before + 1;
        set(config);
        Abort here = is;
        here.way = way;
        retry_matches_clean_control(rank, config, here);
      });
    }
  });
}

void with_small_buckets(ZeroConfig& config) {
  config.reduce_bucket_size = 20;
}

}  // namespace

PEER_ROW(test_zero_shared_loss_gradient, test_managed_backward_context_restored_after_exception) {
  retries(twin, {1, 2, 3}, {});
}

// Upstream has to refuse the rest of the run; here the parts that were reduced are pending until
// the epilogue and are dropped.
PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_partial_reduction_before_aborted_backward_requires_restart) {
  retries(twin, {2, 3}, {}, with_small_buckets);
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_zero3_leaf_partial_reduction_before_abort_requires_restart) {
  retries(twin, {3}, {}, [](ZeroConfig& config) {
    with_small_buckets(config);
    config.leaf_module.names = {"leaf"};
  });
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_step_after_aborted_backward_requires_restart) {
  Twin other = twin;
  if (other.options.policy == "exact") other.options.policy = "deepspeed-pr8245";
  each("stage", std::array{2, 3}, [&](int stage) {
    on_ranks(2, other, [&](Rank& rank) {
      ZeroConfig config = base_config(stage);
      with_small_buckets(config);
      const auto armed = std::make_shared<bool>(true);
      EngineOptions options;
      Engined engine = rank.engine(make_failing(armed, "l2"), config, options);
      bool has_thrown = false;
      try {
        run_engine(rank, engine, {.way = BackwardWay::managed}, {rank.rank(), 0, 0});
      } catch (const std::exception&) {
        has_thrown = true;
      }
      require(has_thrown, "the backward is aborted");
      if (stage == 2) require_throws([&] { engine->step(); }, "incomplete_backward");
    });
  });
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_non_boundary_step_after_aborted_backward_requires_restart) {
  retries(twin, {2, 3}, {.micro_batches_before = 2}, with_small_buckets);
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_zero2_oversized_unreduced_gradient_is_cleared_for_retry) {
  retries(twin, {2}, {}, [](ZeroConfig& config) { config.reduce_bucket_size = 10; });
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_bf16_immediate_update_aborted_backward_requires_restart) {
  retries(
      twin, {0, 1}, {.micro_batches_before = 1},
      [](ZeroConfig& config) { config.grad_accum_dtype = DType::float32; }, DType::bfloat16);
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_zero1_prior_accumulation_aborted_backward_requires_restart) {
  retries(twin, {1}, {.micro_batches_before = 2});
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_coalesced_prior_backward_abort_requires_restart) {
  retries(twin, {2, 3}, {.micro_batches_before = 1, .is_coalesced = true});
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_pre_reduction_abort_retry_matches_clean_control) {
  retries(twin, {2, 3}, {.micro_batches_before = 1});
}

PEER_ROW(test_zero_activation_checkpoint_lifecycle,
         test_zero2_cpu_offload_pre_reduction_abort_retry_matches_clean_control) {
  retries(twin, {2}, {.micro_batches_before = 1},
          [](ZeroConfig& config) { config.offload_optimizer = OffloadDevice::cpu; });
}

// --- #8135: two losses of one forward ------------------------------------------------------------

namespace {

void two_losses(const Twin& twin, BackwardWay way) {
  const NetMaker make = []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"trunk", linear_layer(4, 4, 1)},
                                {"a", linear_layer(4, 4, 2)},
                                {"b", linear_layer(4, 4, 3)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = tanh(ag, net.call(ag, "trunk", in.at(0)));
          return {mean_square(ag, net.call(ag, "a", x)), mean_square(ag, net.call(ag, "b", x))};
        });
  };
  each("stage", std::array{1, 2, 3}, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make, base_config(stage));
      Ddp ddp(make, {});
      for (int step = 0; step < 2; ++step) {
        const Place place{rank.rank(), step, 0};
        const TensorList losses = engine->forward(batch_of(place, 4, kBranchFloat));
        if (way == BackwardWay::managed) {
          engine->backward(losses.at(0), {.retain_graph = true});
          engine->backward(losses.at(1));
        } else {
          rank.ag.backward(losses.at(0), {.retain_graph = true});
          rank.ag.backward(losses.at(1));
        }
        ddp.run([&](Autograd& ag, nn::Module& module, int r) {
          const TensorList theirs = module(ag, batch_of({r, step, 0}, 4, kBranchFloat));
          ag.backward(add(ag, theirs.at(0), theirs.at(1)));
        });
        require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(kBranchFloat),
                      "the sum");
        engine->step();
        ddp.step();
      }
    });
  });
}

}  // namespace

PEER_ROW(test_zero_user_backward, test_two_losses_separate_backward_gas1) {
  two_losses(twin, BackwardWay::managed);
}

PEER_ROW(test_zero_user_backward, test_two_losses_separate_manual_backward_gas1) {
  two_losses(twin, BackwardWay::manual);
}

}  // namespace zeroproof::peer
