// tests/unit/v1/zero/test_zero_torch_func.py: function transforms through the engine.
#include <array>

#include "model/transforms/transforms.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

// Upstream has stages 0 to 2; stage 3 crashes there, and works here.
constexpr std::array kFuncStages = {0, 1, 2, 3};

NetMaker make_smooth() {
  return []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(4, 4, 1)}, {"l1", linear_layer(4, 3, 2)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {net.call(ag, "l1", tanh(ag, net.call(ag, "l0", in.at(0))))};
        });
  };
}

using Call = std::function<Tensor(const Tensor& x)>;
using Transform = std::function<TensorList(Autograd& ag, const Call& call)>;

// The same transform of the engine and of the bare module; the engine is as before.
void equals_bare_module(const Twin& twin, int gas, const Transform& transform) {
  each("stage", kFuncStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(stage);
      config.gradient_accumulation_steps = gas;
      Engined engine = rank.engine(make_smooth(), config);
      CpuOps ops;
      Autograd bare(ops);
      const ModulePtr module = make_smooth()();
      const double factor = twin.has_fault("a divided result") ? 0.25 : 1.0;
      const TensorList expected =
          transform(bare, [&](const Tensor& x) { return (*module)(bare, x); });
      const TensorList got = transform(
          rank.ag, [&](const Tensor& x) { return mul(rank.ag, engine->forward(x), factor); });
      require(got.size() == expected.size(), "as many results");
      for (std::size_t i = 0; i < got.size(); ++i)
        require_equal({{"result", {}, got[i].values()}}, {{"result", {}, expected[i].values()}},
                      {0.0, 1e-5}, "result " + std::to_string(i));
      require(engine->hook_state().active_depth == 0, "no backward is open");
      require(!has_values(engine->full_gradients()), "no gradient came to the engine");
      run_engine(rank, engine,
                 {.way = BackwardWay::managed,
                  .loss = [](Autograd& ag, const TensorList& out,
                             const Place&) { return mean(ag, sq(ag, out.at(0))); }},
                 {0, 0, 0});
      require(has_values(engine->full_gradients()), "and it still trains");
    });
  });
}

Tensor total(Autograd& ag, const Call& call, const Tensor& x) {
  return sum(ag, sq(ag, call(x)));
}

TensorList gradient(Autograd& ag, const Call& call) {
  return func::grad(ag, [&](const TensorList& args) -> TensorList {
    return {total(ag, call, args.at(0))};
  })({sample({2, 4}, 5)});
}

}  // namespace

PEER_ROW(TestEngineTorchFunc, test_grad_through_engine) {
  equals_bare_module(twin, 1, gradient);
}

PEER_ROW(TestEngineTorchFunc, test_grad_and_value_through_engine) {
  equals_bare_module(twin, 1, [](Autograd& ag, const Call& call) -> TensorList {
    const auto both = func::grad_and_value(
        ag, [&](const TensorList& args) -> TensorList { return {total(ag, call, args.at(0))}; },
        {sample({2, 4}, 5)});
    return {both.grads.at(0), both.value};
  });
}

PEER_ROW(TestEngineTorchFunc, test_jacrev_through_engine) {
  equals_bare_module(twin, 1, [](Autograd& ag, const Call& call) {
    return func::jacrev(ag, [&](const TensorList& args) -> TensorList {
      return {call(args.at(0))};
    })({sample({1, 4}, 5)});
  });
}

PEER_ROW(TestEngineTorchFunc, test_vmap_grad_through_engine) {
  equals_bare_module(twin, 1, [](Autograd& ag, const Call& call) {
    const func::Function of_one = func::grad(
        ag, [&](const TensorList& args) -> TensorList { return {total(ag, call, args.at(0))}; });
    return func::vmap(ag, of_one)({sample({3, 4}, 5)});
  });
}

PEER_ROW(TestEngineTorchFunc, test_grad_not_scaled_by_gas) {
  equals_bare_module(twin, 4, gradient);
}

PEER_ROW(TestEngineTorchFunc, test_engine_backward_still_works) {
  each("stage", kFuncStages, [&](int stage) {
    on_ranks(1, twin, [&](Rank& rank) {
      require_matches_ddp(rank, make_stack({}), base_config(stage),
                          {.steps = 2, .way = BackwardWay::managed});
    });
  });
}

PEER_ROW(TestZero0DirectBackwardStillRaises, test_direct_backward_raises_without_functorch) {
  on_ranks(1, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_stack({}), base_config(twin.has_fault("stage 1") ? 1 : 0));
    const Tensor loss = engine->forward(batch_of({0, 0, 0}, 4, DType::float32)).at(0);
    require_throws([&] { rank.ag.backward(loss); }, "manual_backward_unsupported");
    run_engine(rank, engine, {.way = BackwardWay::managed}, {0, 0, 0});
    require(has_values(engine->full_gradients()), "engine.backward works after the refusal");
  });
}

}  // namespace zeroproof::peer
