// tests/unit/runtime/zero: contexts, external parameters, hooks, the linear function's storage.
#include <array>

#include "model/functions/losses.h"
#include "tests/peer/support/probe.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr DType kRuntimeFloat = DType::float32;

}  // namespace

PEER_ROW(TestUnwrapModelTraceInvalidate, test) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = base_config(3);
    config.stage3_prefetch_bucket_size = 1000;
    Engined engine = rank.engine(make_stack({.layers = 3}), config);
    Ddp ddp(make_stack({.layers = 3}), {});
    for (int step = 0; step < 6; ++step) {
      if (step == 3) {
        TensorList all;
        for (const auto& parameter : engine.module().named_parameters())
          all.push_back(parameter.tensor);
        engine.zero3().remove_module_hooks();
        engine->gathered_parameters(all, std::nullopt, [&] {
          const GradMode off(rank.ag, false);
          engine.module()(rank.ag, batch_of({rank.rank(), 99, 0}, 4, kRuntimeFloat));
        });
        if (!twin.has_fault("hooks stay away")) engine.zero3().register_module_hooks();
        require(engine.zero3().coordinator().trace().mode() == TraceMode::invalid,
                "the recorded order is invalid");
      }
      const Place place{rank.rank(), step, 0};
      run_engine(rank, engine, {.way = BackwardWay::managed}, place);
      run_reference(ddp, {}, config, place);
      require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(kRuntimeFloat),
                    "gradients");
      require_released(engine, "after the backward");
      engine->step();
      ddp.step();
    }
    require(engine.zero3().coordinator().trace().is_complete(), "recorded again");
  });
}

PEER_ROW(TestUnwrapModel, test) {
  on_ranks(2, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_stack({}), base_config(3));
    const auto fetches = [&] { return rank.recording.count(EventKind::zmod_fetch); };
    TensorList all;
    for (const auto& parameter : engine.module().named_parameters())
      all.push_back(parameter.tensor);
    engine.zero3().remove_module_hooks();
    const std::size_t before = fetches();
    engine->gathered_parameters(all, std::nullopt, [&] {
      for (const Tensor& tensor : all) require(tensor.numel() > 0, "gathered inside");
      engine.module()(rank.ag, batch_of({rank.rank(), 0, 0}, 4, kRuntimeFloat));
      require(fetches() == before, "no hooks inside");
    });
    if (!twin.has_fault("hooks stay away")) engine.zero3().register_module_hooks();
    for (const Tensor& tensor : all) require(tensor.numel() == 0, "partitioned outside");
    run_engine(rank, engine, {}, {rank.rank(), 0, 0});
    require(fetches() > before, "hooks are back");
  });
}

PEER_ROW(TestGatheredParametersAllRanksErrorOnModification, test) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = base_config(3);
    config.enable_sanity_checks = !twin.has_fault("no sanity checks");
    Engined engine = rank.engine(make_stack({}), config);
    PartitionedParameter& parameter = engine.partitioned("l0.weight");
    const Tensor tensor = parameter.parameter().tensor;
    require_throws(
        [&] {
          engine->gathered_parameters({tensor}, std::nullopt, [&] {
            if (rank.rank() == 0)
              rank.runtime.kernels().fill(rank.runtime.stream(StreamRole::compute),
                                          Span::of(tensor), 0.0);
          });
        },
        "modified_without_modifier_rank");
    require(parameter.is_partitioned() && parameter.user_depth() == 0, "partitioned all the same");
    engine->gathered_parameters({tensor}, std::nullopt, [&] {
      for (const double value : tensor.values()) require(value != 0.0, "nothing has changed");
    });
  });
}

PEER_ROW(TestScatterGather, test) {
  on_ranks(2, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_stack({.width = 6}), base_config(3));
    PartitionedParameter& parameter = engine.partitioned("l0.weight");
    const Tensor tensor = parameter.parameter().tensor;
    require(parameter.is_partitioned() && tensor.numel() == 0, "partitioned");
    require(parameter.slice_elements() == 18, "half of it is here");
    engine->gathered_parameters({tensor}, std::nullopt, [&] {
      require(parameter.is_available() && tensor.sizes() == Shape{6, 6}, "whole inside");
      require_equal({{"w", {}, tensor.values()}},
                    {{"w", {}, linear_layer(6, 6, 42)->weight.values()}}, {}, "its values");
    });
    require(parameter.is_partitioned() && tensor.numel() == 0, "partitioned again");
  });
}

PEER_ROW(TestZeroGatheredParametersFree, test) {
  on_ranks(1, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_stack({.width = 32}), base_config(3));
    const Tensor tensor = engine.partitioned("l1.weight").parameter().tensor;
    const auto live = [&] { return rank.runtime.memory().stats(Placement::device).live_bytes; };
    const std::int64_t before = live();
    Tensor kept;
    engine->gathered_parameters({tensor}, std::nullopt, [&] {
      require(tensor.numel() == 1024 && live() > before, "non-zero inside");
      if (twin.has_fault("somebody keeps it")) kept = tensor.detach();
    });
    require(tensor.numel() == 0 && live() == before, "zero-sized and free after it");
  });
}

PEER_ROW(TestGatherUpdate, test) {
  on_ranks(2, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_stack({}), base_config(3));
    const Tensor tensor = engine.partitioned("l1.weight").parameter().tensor;
    engine->gathered_parameters({tensor}, 1, [&] {
      if (rank.rank() == 1)
        rank.runtime.kernels().fill(rank.runtime.stream(StreamRole::compute), Span::of(tensor),
                                    0.0);
    });
    engine->gathered_parameters({tensor}, std::nullopt, [&] {
      for (const double value : tensor.values()) require(value == 0.0, "zeros on all ranks");
    });
  });
}

// --- external parameters -----------------------------------------------------------------------

PEER_ROW(TestSerialContext, test_ext_param_getattr) {
  const bool is_unseen = twin.has_fault("a read past the module");
  const NetMaker make = [is_unseen]() -> ModulePtr {
    const auto owner = linear_layer(4, 4, 1);
    const auto user = std::make_shared<Net>(
        Net::Parts{.children = {{"own", linear_layer(4, 4, 2)}}},
        [owner, is_unseen](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor& weight = is_unseen ? owner->weight : owner->read(owner->weight);
          return {linear(ag, net.call(ag, "own", in.at(0)), weight, Tensor())};
        });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"owner", owner}, {"user", user}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "user", tanh(ag, net.call(ag, "owner", in.at(0))));
          return {mse_loss(ag, x, in.at(1))};
        });
  };
  on_ranks(1, twin, [&](Rank& rank) {
    require_matches_ddp(rank, make, base_config(3), {.steps = 3, .way = BackwardWay::managed});
  });
}

PEER_ROW(TestReturnParam, test_ext_param_return) {
  const NetMaker make = []() -> ModulePtr {
    const Tensor bias = sample({4}, 3);
    bias.set_requires_grad(true);
    const auto giver = std::make_shared<Net>(
        Net::Parts{.children = {{"lin", linear_layer(4, 4, 1)}}, .parameters = {{"bias", bias}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {net.call(ag, "lin", in.at(0)), net.parameter("bias")};
        });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"giver", giver}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const TensorList two = net.call_list(ag, "giver", {in.at(0)});
          return {mse_loss(ag, tanh(ag, add(ag, two.at(0), two.at(1))), in.at(1))};
        });
  };
  on_ranks(1, twin, [&](Rank& rank) {
    require_matches_ddp(rank, make, base_config(3), {.steps = 5, .way = BackwardWay::managed});
  });
}

PEER_ROW(TestReturnParam, test_stage_3_output_type) {
  using Container = nn::Module::OutputContainer;
  for (const Container container : {Container::tensors, Container::dict, Container::dataclass}) {
    const NetMaker make = [container]() -> ModulePtr {
      const auto inner = std::make_shared<Net>(
          Net::Parts{.children = {{"lin", linear_layer(4, 4, 1)}}},
          [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
            return {net.call(ag, "lin", in.at(0)), Tensor()};
          });
      inner->container = container;
      return std::make_shared<Net>(
          Net::Parts{.children = {{"inner", inner}}},
          [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
            const TensorList two = net.call_list(ag, "inner", {in.at(0)});
            require(!two.at(1).is_defined(), "what is no tensor passes through");
            return {mse_loss(ag, two.at(0), in.at(1))};
          });
    };
    on_ranks(1, twin,
             [&](Rank& rank) { require_matches_ddp(rank, make, base_config(3), {.steps = 3}); });
  }
}

// A wrapper and what it wraps have counters of their own.
PEER_ROW(TestHookAttributeDelegation, test) {
  const NetMaker make = []() -> ModulePtr {
    const auto wrapper =
        std::make_shared<Net>(Net::Parts{.children = {{"wrapped", linear_layer(4, 4, 1)}}},
                              [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
                                return {net.call(ag, "wrapped", in.at(0))};
                              });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"in", linear_layer(4, 4, 2)}, {"wrapper", wrapper}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "in", in.at(0));
          return {mse_loss(ag, net.call(ag, "wrapper", x), in.at(1))};
        });
  };
  on_ranks(1, twin, [&](Rank& rank) {
    Loop loop{.steps = 2};
    loop.after_backward = [](Engined& engine, const Place&) {
      require_released(engine, "after the backward");
    };
    require_matches_ddp(rank, make, base_config(3), loop);
    const auto backward_fetches = [&](const std::string& module) {
      std::size_t found = 0;
      for (const HookEvent& event : rank.recording.events)
        if (event.kind == EventKind::zmod_fetch && !event.is_forward &&
            rank.recording.names.text(event.name) == module)
          ++found;
      return found;
    };
    require(backward_fetches("wrapper") == 2, "the wrapper's backward, twice");
    require(backward_fetches("wrapper.wrapped") == 2, "the wrapped one's, twice");
  });
}

// --- the linear function -----------------------------------------------------------------------

namespace {

struct Seen {
  const Storage* in_forward = nullptr;
  const Storage* in_backward = nullptr;
  std::int64_t between = -1;
};

// A linear function with a look at its weight inside forward and inside the module's backward.
NetMaker make_watched(Seen& seen) {
  return [&seen]() -> ModulePtr {
    const Tensor weight = linear_layer(4, 4, 1)->weight;
    const auto layer = std::make_shared<Net>(
        Net::Parts{.parameters = {{"weight", weight}}},
        [&seen](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor& own = net.parameter("weight");
          seen.in_forward = own.storage_id();
          require(own.numel() == 16, "whole in forward");
          return {probe(ag, linear(ag, in.at(0), own, Tensor()), [&seen, own] {
            seen.in_backward = own.storage_id();
            require(own.numel() == 16, "whole in backward");
          })};
        });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"in", linear_layer(4, 4, 2)}, {"layer", layer}}},
        [&seen](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = net.call(ag, "layer", tanh(ag, net.call(ag, "in", in.at(0))));
          const auto& inner = dynamic_cast<const Net&>(net.child("layer"));
          seen.between = inner.parameter("weight").numel();
          return {mse_loss(ag, x, in.at(1))};
        });
  };
}

}  // namespace

PEER_ROW(TestZero3LinearDirectInit, test_wrapper_and_parameter_storage_lifecycle) {
  on_ranks(2, twin, [&](Rank& rank) {
    Seen seen;
    Seen ignored;
    ZeroConfig config = base_config(3);
    config.stage3_max_reuse_distance = 0;
    Engined engine = rank.engine(make_watched(seen), config);
    const Tensor weight = engine.partitioned("layer.weight").parameter().tensor;
    const TensorList inputs = batch_of({rank.rank(), 0, 0}, 4, kRuntimeFloat);
    const Tensor loss = engine->forward(inputs).at(0);
    const std::int64_t live = rank.runtime.memory().stats(Placement::device).live_bytes;
    require(seen.between == 0 && weight.numel() == 0, "a placeholder after forward");
    Tensor kept;
    if (twin.has_fault("the whole weight stays"))
      kept = rank.runtime.memory().allocate(16, kRuntimeFloat);
    require(rank.runtime.memory().stats(Placement::device).live_bytes == live,
            "the graph keeps no whole weight");
    rank.ag.backward(loss);
    require(seen.in_backward != nullptr && weight.numel() == 0, "released again");
    Ddp ddp(make_watched(ignored), {});
    ddp.run([&](Autograd& ag, nn::Module& module, int r) {
      ag.backward(module(ag, batch_of({r, 0, 0}, 4, kRuntimeFloat)).at(0));
    });
    require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(kRuntimeFloat),
                  "gradients");
  });
}

PEER_ROW(TestZero3LinearDirectInitDisabled, test_disabled_preserves_builtin_linear) {
  each("efficient", std::array{false, true}, [&](bool is_efficient) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(3);
      config.memory_efficient_linear = is_efficient || twin.has_fault("it is on");
      Engined engine = rank.engine(make_stack({}), config);
      require(static_cast<bool>(rank.ag.global().linear) == is_efficient, "the process's linear");
      run_engine(rank, engine, {}, {rank.rank(), 0, 0});
      require(has_values(engine->full_gradients()), "it trains");
    });
  });
}

PEER_ROW(TestAllReduceFetchParamsPadded, test_params_reconstruct_exactly) {
  for (const auto& sizes : {std::array{5, 7}, std::array{4, 6}}) {
    const NetMaker make = [sizes]() -> ModulePtr {
      Net::Parts parts;
      for (std::size_t i = 0; i < 2; ++i) {
        const Tensor value = sample({sizes.at(i)}, i);
        value.set_requires_grad(true);
        parts.parameters.emplace_back("p" + std::to_string(i), value);
      }
      return std::make_shared<Net>(
          parts, [](Autograd& ag, const Net& net, const TensorList&) -> TensorList {
            return {add(ag, sum(ag, net.parameter("p0")), sum(ag, net.parameter("p1")))};
          });
    };
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make, base_config(3));
      TensorList all;
      for (const auto& parameter : engine.module().named_parameters())
        all.push_back(parameter.tensor);
      engine->gathered_parameters(all, std::nullopt, [&] {
        for (std::size_t i = 0; i < 2; ++i)
          require(all[i].values() == sample({sizes.at(i)}, i).values(), "its very values");
      });
    });
  }
}

}  // namespace zeroproof::peer
