// tests/unit/v1/zero/test_zero_hook_count_regression.py: hooks are not counted in every hook.
#include <array>
#include <cmath>

#include "tests/peer/support/training.h"
#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof::peer {
namespace {

// Three layers, the middle one in a non-reentrant checkpoint.
NetMaker make_model() {
  return []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(4, 4, 1)},
                                {"l1", linear_layer(4, 4, 2)},
                                {"l2", linear_layer(4, 4, 3)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = checkpoint(ag, CheckpointKind::non_reentrant,
                                      [&ag, &net](const TensorList& inner) -> TensorList {
                                        return {tanh(ag, net.call(ag, "l1", inner.at(0)))};
                                      },
                                      {net.call(ag, "l0", in.at(0))})
                               .at(0);
          return {mean(ag, sq(ag, net.call(ag, "l2", x)))};
        });
  };
}

std::size_t count_calls(const Recording& recording, std::size_t begin) {
  std::size_t found = 0;
  for (std::size_t i = begin; i < recording.events.size(); ++i)
    if (recording.events[i].kind == EventKind::mark &&
        recording.names.text(recording.events[i].name).starts_with("count_used_parameters"))
      ++found;
  return found;
}

}  // namespace

// The policy that upstream has counts once; ours does without.
PEER_ROW(TestHookCountRegression, test_non_reentrant_single_count_call) {
  each("stage", std::array{1, 2, 3}, [&](int stage) {
    for (const std::string& policy : {twin.options.policy, std::string("deepspeed-0.18.7")})
      within(policy, [&] {
        Twin here = twin;
        here.options.policy = policy;
        on_ranks(2, here, [&](Rank& rank) {
          ZeroConfig config = base_config(stage);
          config.overlap_comm = true;
          Engined engine = rank.engine(make_model(), config);
          for (int step = 0; step < 2; ++step) {
            const std::size_t begin = rank.recording.events.size();
            run_engine(rank, engine, {}, {rank.rank(), step, 0});
            const std::size_t calls = count_calls(rank.recording, begin);
            require(calls == (policy == "exact" ? 0U : 1U),
                    std::to_string(calls) + " count calls in one backward");
            require(rank.recording.count(EventKind::engine_call, "engine.backward_epilogue",
                                         begin) == 1,
                    "one epilogue a backward");
            engine->step();
          }
        });
      });
  });
}

PEER_ROW(TestHookCountRegression, test_training_step_succeeds_after_fix) {
  each("stage", std::array{1, 2, 3}, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      require_matches_ddp(rank, make_model(), base_config(stage), {.steps = 2});
    });
  });
}

}  // namespace zeroproof::peer
