// Stage 3 and graphs that are kept (docs/spec/zero.md 3.11): what a backward that retains its graph
// releases stays until no live graph needs it, and which parameters are gathered depends on the
// calls alone.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "engine/journal.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

constexpr int kRetainedRanks = 2;

// How many all-gathers a rank has issued.
class GatherCount final : public EventSink {
 public:
  void on_event(const HookEvent& event) override {
    if (event.kind == EventKind::coll_issue && names.text(event.name).starts_with("all_gather"))
      ++count;
  }

  NameTable names;
  int count = 0;
};

struct Rank {
  Engine& engine;
  Autograd& ag;
  const GatherCount& gathers;
  int rank = 0;

  TensorList forward() const { return engine.forward(TensorList{filled({2, 4}, 0.01 * rank)}); }
  int gathers_of(const std::function<void()>& body) const {
    const int before = gathers.count;
    body();
    return gathers.count - before;
  }
  // The names of the parameters that are in memory.
  std::vector<std::string> gathered() const {
    std::vector<std::string> names;
    for (const nn::NamedParameter& named : engine.module().named_parameters())
      if (named.tensor.numel() > 0) names.push_back(named.name);
    return names;
  }
};

using Names = std::vector<std::string>;
using RetainedProgram = std::function<void(const Rank& rank)>;

void run_retained(const RetainedProgram& program, std::int64_t live_elements = 1'000) {
  std::deque<GatherCount> counts(kRetainedRanks);
  std::deque<Journal> journals;
  HostWorldOptions options{.world_size = kRetainedRanks};
  for (int rank = 0; rank < kRetainedRanks; ++rank) {
    journals.emplace_back(counts[static_cast<std::size_t>(rank)],
                          counts[static_cast<std::size_t>(rank)].names, rank);
    options.observers.push_back({.journal = &journals.back()});
  }
  HostWorld world(options);
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    TwoLossModel model;
    ZeroConfig config{.stage = 3};
    config.stage3_param_persistence_threshold = 0;
    config.stage3_prefetch_bucket_size = 0;
    config.stage3_max_reuse_distance = 0;
    config.stage3_max_live_parameters = live_elements;
    auto engine = Engine::initialize(ag, model, config, runtime).value();
    program({.engine = *engine,
             .ag = ag,
             .gathers = counts[static_cast<std::size_t>(runtime.rank())],
             .rank = runtime.rank()});
  });
}

const Names kOfFirstLoss = {"scale", "trunk.weight", "trunk.bias", "a.weight", "a.bias"};

// The three ways of a backward that retains.
class RetainedGraph : public ::testing::TestWithParam<const char*> {
 protected:
  static void retain(const Rank& rank, const Tensor& loss) { differentiate(rank, loss, true); }
  static void differentiate(const Rank& rank, const Tensor& loss, bool retain_graph) {
    const std::string_view way = GetParam();
    if (way == "engine") return (void)rank.engine.backward(loss, {.retain_graph = retain_graph});
    const Tensor root = way == "scale" ? rank.engine.scale(loss, retain_graph) : loss;
    rank.ag.backward(root, {.retain_graph = retain_graph});
  }
};

TEST_P(RetainedGraph, Keeps_what_it_needs_and_gathers_it_once) {
  run_retained([](const Rank& rank) {
    const TensorList losses = rank.forward();
    EXPECT_GT(rank.gathers_of([&] { retain(rank, losses[0]); }), 0);
    EXPECT_EQ(rank.gathered(), kOfFirstLoss);
    EXPECT_EQ(rank.gathers_of([&] { retain(rank, losses[0]); }), 0);
    // The other head alone is not there.
    EXPECT_EQ(rank.gathers_of([&] { differentiate(rank, losses[1], false); }), 1);
    EXPECT_EQ(rank.gathered(), Names{}) << "a backward did not retain the graph";
  });
}

TEST_P(RetainedGraph, Gives_everything_back_when_it_is_gone) {
  run_retained([](const Rank& rank) {
    TensorList losses = rank.forward();
    retain(rank, losses[1]);
    retain(rank, losses[0]);
    EXPECT_EQ(rank.gathered().size(), 7U);
    losses[1] = {};  // its head has no owner any more, the trunk has one
    EXPECT_EQ(rank.gathered(), kOfFirstLoss);
    losses.clear();
    EXPECT_EQ(rank.gathered(), Names{});
  });
}

TEST_P(RetainedGraph, Is_not_ended_by_zero_grad_but_by_a_step) {
  run_retained([](const Rank& rank) {
    const TensorList losses = rank.forward();
    retain(rank, losses[0]);
    rank.engine.zero_grad();
    EXPECT_EQ(rank.gathered(), kOfFirstLoss);
    EXPECT_EQ(rank.gathers_of([&] { retain(rank, losses[0]); }), 0);
    rank.engine.step();
    EXPECT_EQ(rank.gathered(), Names{}) << "its values are old";
    EXPECT_GT(rank.gathers_of([&] { retain(rank, losses[0]); }), 0);
  });
}

TEST_P(RetainedGraph, Is_given_up_by_a_backward_that_fails) {
  run_retained([](const Rank& rank) {
    const TensorList losses = rank.forward();
    retain(rank, losses[0]);
    HookHandle hook = losses[1].register_hook(
        [](const Tensor&) -> Tensor { throw std::runtime_error("injected"); });
    EXPECT_THROW(retain(rank, losses[1]), std::runtime_error);
    EXPECT_EQ(rank.gathered(), Names{});
    hook.remove();
    retain(rank, rank.forward()[0]);
    EXPECT_EQ(rank.gathered(), Names{});  // its graph is gone
  });
}

// Another forward gathers what it needs, even if a retained graph keeps it.
TEST_P(RetainedGraph, Stays_beside_another_forward_which_gathers_for_itself) {
  run_retained([](const Rank& rank) {
    int alone = rank.gathers_of([&] { rank.forward(); });
    const TensorList losses = rank.forward();
    retain(rank, losses[0]);
    EXPECT_EQ(rank.gathers_of([&] { differentiate(rank, rank.forward()[1], false); }),
              alone + 3);  // model, head, trunk
    EXPECT_EQ(rank.gathered(), kOfFirstLoss);
    EXPECT_EQ(rank.gathers_of([&] { differentiate(rank, losses[0], false); }), 0);
    EXPECT_EQ(rank.gathered(), Names{});
  });
}

// Rank 1 has its losses in a log: no collective may depend on that.
TEST_P(RetainedGraph, Can_live_on_one_rank_alone) {
  run_retained([](const Rank& rank) {
    std::vector<TensorList> log;
    for (int step = 0; step < 3; ++step) {
      TensorList losses = rank.forward();
      retain(rank, losses[0]);
      retain(rank, losses[1]);
      if (rank.rank == 1) log.push_back(losses);
      losses.clear();
      EXPECT_EQ(rank.gathered().empty(), rank.rank == 0);
      differentiate(rank, rank.forward()[0], false);
      rank.engine.gathered_parameters({rank.engine.module().named_parameters().front().tensor},
                                      std::nullopt, [] {});
      if (step == 1) rank.engine.step();
    }
  });
}

// The head of 14 elements comes first, and with it the trunk's bias of 6; what does not fit is
// gathered again.
TEST_P(RetainedGraph, Keeps_no_more_than_the_live_budget) {
  constexpr std::int64_t kBudget = 20;
  run_retained(
      [](const Rank& rank) {
        const TensorList losses = rank.forward();
        retain(rank, losses[0]);
        EXPECT_EQ(rank.gathered(), (Names{"trunk.bias", "a.weight", "a.bias"}));
        EXPECT_EQ(rank.gathers_of([&] { retain(rank, losses[0]); }), 2);  // trunk and root
        EXPECT_EQ(rank.gathered(), (Names{"trunk.bias", "a.weight", "a.bias"}));
      },
      kBudget);
}

TEST_P(RetainedGraph, May_outlive_its_engine) {
  TensorList losses;
  run_retained([&](const Rank& rank) {
    const TensorList own = rank.forward();
    retain(rank, own[0]);
    if (rank.rank == 0) losses = own;
  });
  losses.clear();
}

INSTANTIATE_TEST_SUITE_P(Ways, RetainedGraph, ::testing::Values("engine", "scale", "tensor"),
                         [](const auto& way) { return std::string(way.param); });

}  // namespace
}  // namespace zeroproof
