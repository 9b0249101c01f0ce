// tests/unit/v1/compile/test_z3_eager_fallback.py: who owns what a skipped frame has gathered.
#include "engine/zero/stage3/eager_fallback.h"
#include "engine/zero/stage3/gather_context.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

using Lists = std::vector<std::vector<std::string>>;

// A stage-3 engine and a fallback of its own over its parameters.
struct Scene {
  Scene(Rank& rank_in, const NetMaker& make)
      : rank(rank_in),
        engine(rank_in.engine(make, base_config(3))),
        fallback(engine.core().context(), engine.zero3().gatherer()),
        begin(rank_in.recording.events.size()) {}

  PartitionedParameter& parameter(const std::string& name) { return engine.partitioned(name); }
  Lists gathers() const { return rank.recording.parameters(EventKind::zparam_gather_begin, begin); }
  Lists partitions() const { return rank.recording.parameters(EventKind::zparam_partition, begin); }
  // A forward that reads the parameters; with a graph if somebody can differentiate it.
  std::optional<EagerFallback::Graph> forward(const std::vector<std::string>& reads,
                                              bool has_graph) {
    fallback.begin_forward();
    for (const std::string& name : reads) fallback.read(parameter(name));
    return fallback.end_forward(has_graph);
  }
  void gathered(const std::vector<std::string>& names, const std::function<void()>& body) {
    TensorList tensors;
    for (const std::string& name : names) tensors.push_back(parameter(name).parameter().tensor);
    GatherContext context(engine.core().context(), engine.zero3().gatherer(), tensors,
                          std::nullopt);
    body();
    context.exit();
  }

  Rank& rank;
  Engined engine;
  EagerFallback fallback;
  std::size_t begin;
};

void in_scene(const Twin& twin, const std::function<void(Scene&)>& body) {
  on_ranks(1, twin, [&](Rank& rank) {
    Scene scene(rank, make_stack({.layers = 3}));
    body(scene);
  });
}

const std::string kA = "l0.weight";
const std::string kB = "l1.weight";
const std::string kC = "l2.weight";

}  // namespace

PEER_ROW(test_z3_eager_fallback, test_deepcompile_fallback_suppresses_guard_time_gather) {
  in_scene(twin, [&](Scene& scene) {
    scene.fallback.begin_forward();
    scene.fallback.set_guard_evaluation(!twin.has_fault("no guard detection"));
    scene.fallback.read(scene.parameter(kA));
    scene.fallback.set_guard_evaluation(false);
    require(scene.gathers().empty() && scene.parameter(kA).is_partitioned(), "nothing gathered");
    require(scene.fallback.suppressed() == std::vector{scene.parameter(kA).id()}, "suppressed");
  });
}

PEER_ROW(test_z3_eager_fallback, test_deepcompile_fallback_still_gathers_outside_guard) {
  in_scene(twin, [&](Scene& scene) {
    scene.fallback.begin_forward();
    scene.fallback.set_guard_evaluation(twin.has_fault("a guard"));
    scene.fallback.read(scene.parameter(kA));
    require(scene.gathers() == Lists{{kA}} && scene.parameter(kA).is_available(), "one gather");
    require(scene.fallback.tracked() == 1 && scene.fallback.gathers() == 1, "recorded");
  });
}

PEER_ROW(test_z3_eager_fallback,
         test_deepcompile_fallback_releases_leftover_gathered_params_before_forward) {
  in_scene(twin, [&](Scene& scene) {
    scene.forward({kA}, false);
    require(scene.partitions().empty(), "it stays until the next forward");
    scene.fallback.begin_forward();
    require(scene.partitions() == Lists{{kA}}, "released before the next forward");
  });
}

PEER_ROW(test_z3_eager_fallback,
         test_consecutive_deepcompile_inference_forwards_release_unowned_available_params) {
  in_scene(twin, [&](Scene& scene) {
    for (int i = 0; i < 2; ++i) {
      scene.engine.zero3().gatherer().gather({&scene.parameter(kA)});
      scene.forward({}, false);
    }
    require(scene.partitions() == Lists{{kA}, {kA}}, "released by both forwards");
  });
}

namespace {

// Layer a or b, as the second input says; frames are skipped.
NetMaker make_branches() {
  return []() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{
            .children = {{"a", linear_layer(4, 4, 1, false)}, {"b", linear_layer(4, 4, 2, false)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const bool is_first = in.at(1).item() > 0.5;
          return {mean(ag, sq(ag, net.call(ag, is_first ? "a" : "b", in.at(0))))};
        });
  };
}

TensorList branch_inputs(bool is_first) {
  return {sample({2, 4}, is_first ? 1 : 2), Tensor::full({}, is_first ? 1.0 : 0.0, DType::float32)};
}

struct Frames {
  explicit Frames(Rank& rank_in)
      : rank(rank_in),
        engine(rank_in.engine(make_branches(), base_config(3), {.skips_frames = true})) {}
  Tensor forward(bool is_first) { return engine->forward(branch_inputs(is_first)).at(0); }
  bool has(const std::string& name) { return engine.partitioned(name).is_available(); }

  Rank& rank;
  Engined engine;
};

}  // namespace

PEER_ROW(test_z3_eager_fallback,
         test_two_disjoint_fallback_forwards_remain_gathered_until_combined_backward) {
  on_ranks(2, twin, [&](Rank& rank) {
    Frames frames(rank);
    const Tensor a = frames.forward(true);
    const Tensor b = frames.forward(false);
    require(frames.has("a.weight") && frames.has("b.weight"), "both stay");
    const std::size_t begin = rank.recording.events.size();
    rank.ag.backward(add(rank.ag, a, b));
    require(rank.recording.parameters(EventKind::zparam_partition, begin) ==
                Lists{{"a.weight"}, {"b.weight"}},
            "both go with the combined backward");
    require(has_values(frames.engine->full_gradients()), "gradients");
  });
}

PEER_ROW(test_z3_eager_fallback, test_explicit_release_cleans_up_abandoned_forward_graph) {
  in_scene(twin, [&](Scene& scene) {
    scene.forward({kA}, true);
    require(scene.fallback.outstanding() == 1, "a graph is outstanding");
    if (!twin.has_fault("no release")) scene.fallback.release_gathered();
    require(scene.fallback.outstanding() == 0 && scene.fallback.tracked() == 0, "sets are empty");
    require(scene.partitions() == Lists{{kA}}, "released");
  });
  on_ranks(1, twin, [&](Rank& rank) {
    Frames frames(rank);
    frames.forward(true);
    frames.engine->release_gathered_parameters();
    require(!frames.has("a.weight"), "also through the engine");
  });
}

PEER_ROW(test_z3_eager_fallback,
         test_completed_backward_keeps_gathers_for_another_outstanding_forward) {
  on_ranks(2, twin, [&](Rank& rank) {
    Frames frames(rank);
    const Tensor first = frames.forward(true);
    const Tensor second = frames.forward(true);
    rank.ag.backward(second);
    require(frames.has("a.weight"), "the first forward still needs it");
    rank.ag.backward(first);
    require(!frames.has("a.weight"), "gone after both");
    Ddp ddp(make_branches(), {});
    for (int i = 0; i < 2; ++i)
      ddp.run([](Autograd& ag, nn::Module& module, int) {
        ag.backward(module(ag, branch_inputs(true)).at(0));
      });
    require_equal(frames.engine->full_gradients(), ddp.gradients(), tolerance_of(DType::float32),
                  "gradients of both");
  });
}

PEER_ROW(test_z3_eager_fallback, test_new_fallback_owner_drops_previous_owner) {
  in_scene(twin, [&](Scene& scene) {
    EagerFallback other(scene.engine.core().context(), scene.engine.zero3().gatherer());
    scene.forward({kA}, true);
    require(scene.parameter(kA).owner() == &scene.fallback, "the first owns it");
    scene.engine.zero3().gatherer().partition(scene.parameter(kA));
    other.begin_forward();
    other.read(scene.parameter(kA));
    require(scene.parameter(kA).owner() == &other, "one owner, the other");
    require(scene.fallback.tracked() == 0 && other.tracked() == 1, "tracked by one");
  });
}

PEER_ROW(test_z3_eager_fallback,
         test_deepcompile_forward_preserves_fallback_param_adopted_by_user_gathered_context) {
  in_scene(twin, [&](Scene& scene) {
    scene.forward({kA}, false);
    scene.gathered({kA}, [&] {
      scene.forward({}, false);
      require(scene.parameter(kA).is_available(), "a forward inside leaves it");
      scene.fallback.end_backward();
      require(scene.parameter(kA).is_available(), "a backward, too");
    });
    require(scene.partitions() == Lists{{kA}}, "partitioned once, at the exit");
  });
}

PEER_ROW(test_z3_eager_fallback,
         test_gathered_parameters_after_forward_defers_partition_until_backward) {
  in_scene(twin, [&](Scene& scene) {
    const auto graph = scene.forward({kA}, true);
    require(graph.has_value(), "a graph");
    scene.gathered({kA}, [] {});
    require(scene.partitions().empty(), "the user's exit partitions nothing");
    scene.fallback.start_backward(*graph);
    scene.fallback.end_backward();
    require(scene.partitions() == Lists{{kA}}, "one partition, after the backward");
  });
}

PEER_ROW(test_z3_eager_fallback,
         test_context_exception_restores_fallback_and_user_ownership_depth) {
  in_scene(twin, [&](Scene& scene) {
    scene.forward({kA}, false);
    require_throws(
        [&] {
          scene.gathered({kA, kB}, [&] {
            require(scene.parameter(kA).user_depth() == 1, "inside");
            if (!twin.has_fault("no exception")) throw Failed("from inside");
          });
        },
        "from inside");
    for (const std::string& name : {kA, kB}) {
      require(scene.parameter(name).user_depth() == 0, "depth is restored");
      require(scene.parameter(name).is_partitioned(), "partitioned");
      require(scene.parameter(name).owner() == nullptr, "nobody owns it");
    }
    scene.gathered({kA}, [] {});
  });
}

PEER_ROW(test_z3_eager_fallback, test_gathered_parameters_rejects_partial_overlap_atomically) {
  in_scene(twin, [&](Scene& scene) {
    scene.gathered({kA, kB}, [&] {
      const std::vector<std::string> inner =
          twin.has_fault("no overlap") ? std::vector{kC} : std::vector{kB, kC};
      require_throws([&] { scene.gathered(inner, [] {}); }, "gather_contexts_overlap");
      require(scene.parameter(kC).is_partitioned() && scene.parameter(kC).user_depth() == 0,
              "the third is as it was");
      require(scene.parameter(kB).user_depth() == 1, "the second, too");
    });
    require(scene.gathers() == Lists{{kA, kB}}, "one gather");
    require(scene.partitions().size() == 2 && scene.parameter(kA).is_partitioned() &&
                scene.parameter(kB).is_partitioned(),
            "both partitioned once");
  });
}

PEER_ROW(test_z3_eager_fallback, test_gathered_parameters_preserves_disjoint_nesting) {
  in_scene(twin, [&](Scene& scene) {
    scene.gathered({kA}, [&] {
      scene.gathered({twin.has_fault("overlap") ? kA : kB}, [&] {
        require(scene.parameter(kA).is_available() && scene.parameter(kB).is_available(), "both");
      });
      require(scene.parameter(kA).is_available(), "the outer one stays");
    });
    require(scene.gathers() == Lists{{kA}, {kB}}, "gathers in order");
    require(scene.partitions() == Lists{{kB}, {kA}}, "partitions in reverse");
  });
}

}  // namespace zeroproof::peer
