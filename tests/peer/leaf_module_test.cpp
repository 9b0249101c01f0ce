// tests/unit/runtime/zero/test_zero_leaf_module.py: one fetch for all that is below a module.
#include <array>

#include "model/functions/losses.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr DType kLeafFloat = DType::float32;

// Of two layers the one that the last input names runs.
ModulePtr make_choice() {
  return std::make_shared<Net>(
      Net::Parts{.children = {{"0", linear_layer(4, 4, 1)}, {"1", linear_layer(4, 4, 2)}}},
      [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
        return {tanh(ag, net.call(ag, in.at(1).item() > 0.5 ? "1" : "0", in.at(0)))};
      });
}

// Every output of the three is used.
ModulePtr make_three_outputs() {
  return std::make_shared<Net>(
      Net::Parts{.children = {{"0", linear_layer(4, 4, 1)},
                              {"1", linear_layer(4, 4, 2)},
                              {"2", linear_layer(4, 4, 3)}}},
      [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
        return {net.call(ag, "0", in.at(0)), tanh(ag, net.call(ag, "1", in.at(0))),
                sin(ag, net.call(ag, "2", in.at(0)))};
      });
}

NetMaker around(const std::function<ModulePtr()>& inner) {
  return [inner]() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"in", linear_layer(4, 4, 8)},
                                {"leaf", inner()},
                                {"head", linear_layer(4, 4, 9)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          TensorList inputs = {net.call(ag, "in", in.at(0))};
          if (in.size() > 2) inputs.push_back(in.at(2));
          Tensor x;
          for (const Tensor& part : net.call_list(ag, "leaf", inputs))
            x = x.is_defined() ? add(ag, x, part) : part;
          return {mse_loss(ag, net.call(ag, "head", x), in.at(1))};
        });
  };
}

ZeroConfig leaf_config(bool is_leaf) {
  ZeroConfig config = base_config(3);
  if (is_leaf) config.leaf_module.names = {"leaf"};
  return config;
}

void choice_matches_ddp(const Twin& twin, const std::function<double(const Place&)>& choice) {
  on_ranks(2, twin, [&](Rank& rank) {
    Loop loop{.steps = 10, .way = BackwardWay::managed};
    loop.inputs = [&](const Place& place) {
      TensorList inputs = batch_of(place, 4, kLeafFloat);
      inputs.push_back(Tensor::full({}, choice(place), kLeafFloat));
      return inputs;
    };
    require_matches_ddp(rank, around(make_choice), leaf_config(!twin.has_fault("no leaf")), loop);
  });
}

}  // namespace

PEER_ROW(TestSetZ3LeafModule, test_choose_module_by_counter) {
  choice_matches_ddp(twin, [](const Place& place) { return place.step % 2; });
}

PEER_ROW(TestSetZ3LeafModule, test_choose_module_by_rank) {
  choice_matches_ddp(twin, [](const Place& place) { return place.rank; });
}

PEER_ROW(TestSetZ3LeafModule, test_multi_output_leaf_module_thread_safety) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = leaf_config(true);
    config.stage3_max_reuse_distance = 0;
    config.stage3_prefetch_bucket_size = 0;
    require_matches_ddp(rank, around(make_three_outputs), config,
                        {.steps = 10, .way = BackwardWay::managed});
    std::size_t gathers = 0;
    for (const HookEvent& event : rank.recording.events) {
      if (event.kind != EventKind::zparam_gather_begin || event.is_forward) continue;
      for (const NameId name : event.params)
        if (rank.recording.names.text(name) == "leaf.0.weight") ++gathers;
    }
    require(gathers == 10, "one gather for all outputs of a backward: " + std::to_string(gathers));
  });
}

PEER_ROW(TestSetZ3LeafModule, test_multi_output_non_leaf_module_thread_safety) {
  on_ranks(2, twin, [&](Rank& rank) {
    require_matches_ddp(rank, around(make_three_outputs), leaf_config(false),
                        {.steps = 10, .way = BackwardWay::managed});
  });
}

PEER_ROW(TestSetZ3LeafModule, test_no_grad_input_error) {
  const NetMaker make = []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"leaf", linear_layer(4, 4, 1)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {mse_loss(ag, net.call(ag, "leaf", in.at(0)), in.at(1))};
        });
  };
  on_ranks(2, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make, leaf_config(true));
    TensorList inputs = batch_of({rank.rank(), 0, 0}, 4, kLeafFloat);
    inputs[0].set_requires_grad(twin.has_fault("an input with a gradient"));
    require_throws([&] { engine->backward(engine->forward(inputs).at(0)); },
                   "gradient_of_wrong_size");
  });
}

PEER_ROW(TestSetZ3LeafModule, test_set_unset_leaf_modules) {
  on_ranks(2, twin, [&](Rank& rank) {
    Engined engine = rank.engine(around(make_choice), leaf_config(false));
    if (!twin.has_fault("no leaf")) engine->set_leaf_module(engine.net().child("leaf"));
    Loop loop{.way = BackwardWay::managed};
    loop.inputs = [](const Place& place) {
      TensorList inputs = batch_of(place, 4, kLeafFloat);
      inputs.push_back(Tensor::full({}, place.rank, kLeafFloat));
      return inputs;
    };
    run_engine(rank, engine, loop, {rank.rank(), 0, 0});
    require(rank.recording.count(EventKind::zmod_fetch, "leaf") > 0, "the leaf is fetched");
    require(rank.recording.count(EventKind::zmod_fetch, "leaf.0") == 0, "what is below is not");
    require(rank.recording.count(EventKind::zmod_fetch, "leaf.1") == 0, "what is below is not");
  });
}

PEER_ROW(TestSetZ3LeafModule, test_set_no_match_class) {
  on_ranks(2, twin, [&](Rank& rank) {
    ZeroConfig config = leaf_config(false);
    config.leaf_module.classes = {twin.has_fault("a class that is there") ? "Linear" : "Absent"};
    require_throws([&] { rank.engine(around(make_choice), config); }, "Absent");
  });
}

PEER_ROW(TestSetZ3LeafModule, test_leaf_module_enabled_via_config) {
  each("way", std::array{0, 1}, [&](int way) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = leaf_config(false);
      if (way == 0) config.leaf_module.classes = {"Linear"};
      if (way == 1 && !twin.has_fault("no leaf")) config.leaf_module.name_suffixes = {"af"};
      Loop loop{.steps = 3, .way = BackwardWay::managed};
      loop.inputs = [](const Place& place) {
        TensorList inputs = batch_of(place, 4, kLeafFloat);
        inputs[0].set_requires_grad(true);
        inputs.push_back(Tensor::full({}, place.step % 2, kLeafFloat));
        return inputs;
      };
      require_matches_ddp(rank, around(make_choice), config, loop);
      require(way == 0 || rank.recording.count(EventKind::zmod_fetch, "leaf.0") == 0,
              "nothing below the leaf is fetched");
    });
  });
}

PEER_ROW(TestZ3LeafOptimization, test_finegrained_optimization) {
  on_ranks(2, twin, [&](Rank& rank) {
    std::vector<double> expected;
    for (const int threshold : {0, 100, 12, 10'000}) {
      ZeroConfig config = leaf_config(false);
      config.stage3_module_granularity_threshold = threshold;
      Engined engine = rank.engine(around(make_three_outputs), config);
      std::vector<double> losses;
      for (int step = 0; step < 20; ++step) {
        const Tensor loss =
            engine->forward(batch_of({rank.rank(), step % 4, 0}, 4, kLeafFloat)).at(0);
        losses.push_back(loss.item());
        engine->backward(loss);
        engine->step();
      }
      if (expected.empty()) expected = losses;
      if (twin.has_fault("another loss") && threshold > 0) losses[19] += 1e-7;
      require(losses == expected, "the same losses to the last bit");
    }
    require(rank.recording.count(EventKind::zmod_fetch, "leaf") > 0, "fetched as one");
    Ddp ddp(around(make_three_outputs), {});
    for (int step = 0; step < 19; ++step) {
      run_reference(ddp, {}, base_config(3), {0, step % 4, 0});
      ddp.step();
    }
    double loss = 0.0;
    ddp.run([&](Autograd& ag, nn::Module& module, int r) {
      const double its = module(ag, batch_of({r, 3, 0}, 4, kLeafFloat)).at(0).item();
      if (r == rank.rank()) loss = its;
    });
    require_near(expected.back(), loss, 1e-5, "the last loss against the reference");
  });
}

}  // namespace zeroproof::peer
