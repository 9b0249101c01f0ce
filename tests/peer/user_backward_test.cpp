// tests/unit/v1/zero/test_zero_user_backward.py: loss.backward() instead of engine.backward().
#include <array>

#include "model/functions/losses.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kUserStages = {1, 2, 3};
constexpr std::array kDtypes = {DType::bfloat16, DType::float32};

// Upstream's twins: one stack of two layers of width 4, two ranks.
void matches_ddp(const Twin& twin, const Loop& loop, const std::function<void(ZeroConfig&)>& set,
                 const NetMaker& make = make_stack({}), DType dtype = DType::float32) {
  each("stage", kUserStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage, dtype);
      set(config);
      require_matches_ddp(rank, make, config, loop);
    });
  });
}

void nothing(ZeroConfig&) {}

}  // namespace

PEER_ROW(TestZeroUserBackwardBasic, test_loss_backward_matches_ddp) {
  for (const DType dtype : kDtypes)
    matches_ddp(twin, {.compares_parameters = false}, nothing, make_stack({}), dtype);
}

PEER_ROW(TestZeroUserBackwardNonScalar, test_non_scalar_backward) {
  for (const DType dtype : kDtypes)
    matches_ddp(twin, {.is_non_scalar = true}, nothing, make_stack({.has_loss = false}), dtype);
}

PEER_ROW(TestZeroUserBackwardGradAccumulation, test_grad_accumulation) {
  matches_ddp(twin, {.steps = 4, .micro_batches = 4},
              [](ZeroConfig& config) { config.gradient_accumulation_steps = 4; });
}

// Afterwards a backward by hand, which is divided again.
PEER_ROW(TestZeroUserBackwardGradAccumulation, test_grad_accumulation_scale_wrt_gas_false) {
  const auto set = [](ZeroConfig& config) { config.gradient_accumulation_steps = 4; };
  matches_ddp(twin,
              {.steps = 2, .micro_batches = 4, .way = BackwardWay::managed, .scale_wrt_gas = false},
              set);
  each("stage", kUserStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage);
      set(config);
      Engined engine = rank.engine(make_stack({}), config);
      Ddp ddp(make_stack({}), {});
      for (int micro = 0; micro < 4; ++micro) {
        const bool is_divided = micro % 2 == 1;
        const Loop loop{.way = is_divided ? BackwardWay::manual : BackwardWay::managed,
                        .scale_wrt_gas = is_divided};
        run_engine(rank, engine, loop, {rank.rank(), 0, micro});
        run_reference(ddp, loop, config, {0, 0, micro});
        if (micro < 3) engine->step();
      }
      require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(DType::float32),
                    "in turns");
    });
  });
}

PEER_ROW(TestZeroUserBackwardMultipleEngines, test_multiple_engines_combined_loss) {
  each("stage", kUserStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      std::vector<std::unique_ptr<Engined>> engines;
      std::vector<std::unique_ptr<Ddp>> references;
      for (int i = 0; i < 3; ++i) {
        const NetMaker make = make_stack({}, static_cast<std::uint64_t>(42 + 10 * i));
        engines.push_back(
            std::make_unique<Engined>(rank.engine(make, base_config(stage), {.id = EngineId{i}})));
        references.push_back(std::make_unique<Ddp>(make, DdpOptions{}));
      }
      for (int step = 0; step < 2; ++step) {
        Tensor loss;
        for (int i = 0; i < 3; ++i) {
          const Place place{rank.rank(), step, i};
          const Tensor part = div(rank.ag,
                                  (**engines[static_cast<std::size_t>(i)])
                                      .forward(batch_of(place, 4, DType::float32))
                                      .at(0),
                                  static_cast<double>(i + 1));
          loss = loss.is_defined() ? add(rank.ag, loss, part) : part;
          const Loop loop{.loss = [&](Autograd& ag, const TensorList& outputs, const Place&) {
            return div(ag, outputs.at(0), static_cast<double>(i + 1));
          }};
          run_reference(*references[static_cast<std::size_t>(i)], loop, base_config(stage), place);
        }
        rank.ag.backward(loss);
        for (std::size_t i = 0; i < 3; ++i) {
          require_equal((**engines[i]).full_gradients(), references[i]->gradients(),
                        tolerance_of(DType::float32), "engine " + std::to_string(i));
          (**engines[i]).step();
          references[i]->step();
          require_equal((**engines[i]).full_parameters(), references[i]->parameters(),
                        tolerance_of(DType::float32), "parameters of " + std::to_string(i));
        }
      }
    });
  });
}

PEER_ROW(TestZeroUserBackwardSeparateLoss, test_separate_loss_function) {
  const Loop loop{
      .loss =
          [](Autograd& ag, const TensorList& outputs, const Place& place) {
            return cross_entropy(ag, outputs.at(0), {{place.rank % 4, (place.rank + 2) % 4}});
          },
      .compares_parameters = false};
  for (const DType dtype : kDtypes)
    matches_ddp(twin, loop, nothing, make_stack({.has_loss = false}), dtype);
}

namespace {

// A list of branches, all of which are used, as one leaf.
NetMaker make_branches(bool has_loss) {
  return [has_loss]() -> ModulePtr {
    const auto branches = std::make_shared<Net>(
        Net::Parts{.children = {{"0", linear_layer(4, 4, 1)}, {"1", linear_layer(4, 4, 2)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {add(ag, net.call(ag, "0", in.at(0)), net.call(ag, "1", in.at(0)))};
        });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"in", linear_layer(4, 4, 3)}, {"branches", branches}}},
        [has_loss](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "branches", net.call(ag, "in", in.at(0)));
          return {has_loss ? mse_loss(ag, x, in.at(1)) : x};
        });
  };
}

void leaf_matches_ddp(const Twin& twin, bool is_non_scalar) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = base_config(3);
    config.leaf_module.names = {"branches"};
    require_matches_ddp(rank, make_branches(!is_non_scalar), config,
                        {.is_non_scalar = is_non_scalar});
    const auto fetches = [&](const std::string& module) {
      return rank.recording.count(EventKind::zmod_fetch, module);
    };
    require(fetches("branches") > 0, "the leaf is fetched");
    require(fetches("branches.0") == 0, "what is below the leaf is not");
  });
}

}  // namespace

PEER_ROW(TestZeroUserBackwardLeafModule, test_leaf_module_backward) {
  leaf_matches_ddp(twin, false);
}

PEER_ROW(TestZeroUserBackwardLeafModule, test_leaf_module_non_scalar_backward) {
  leaf_matches_ddp(twin, true);
}

}  // namespace zeroproof::peer
