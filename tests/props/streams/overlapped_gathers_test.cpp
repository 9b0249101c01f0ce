// All-gathers beside other work: of the update in stages 1 and 2, of the next forward in all.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "model/cpu_ops.h"
#include "props/stream_properties.h"
#include "sim/schedulers/random.h"
#include "sim/world/sim_world.h"
#include "tests/engine/support/capturing_runtime.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/internal/engine/runtime/access.h"

namespace zeroproof {
namespace {

constexpr int kSteps = 4;

// The gradients of every step, one value after the other: all but the first follow from what was
// gathered before.
std::vector<double> gradients_of(const ZeroConfig& config, HostWorld& world) {
  std::vector<double> values;
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd autograd(ops);
    MlpModel model;
    auto engine = Engine::initialize(autograd, model, config, runtime).value();
    for (int step = 0; step < kSteps; ++step) {
      engine->backward(engine->forward(filled({2, 4}, 0.01 * runtime.rank())));
      for (const FullTensor& gradient : engine->full_gradients())
        if (runtime.rank() == 0)
          values.insert(values.end(), gradient.values.begin(), gradient.values.end());
      engine->step();
    }
  });
  return values;
}

TEST(OverlappedGathers, Of_parts_of_an_update_give_the_bits_of_one_behind_it) {
  for (const int stage : {1, 2})
    for (const int world_size : {2, 3}) {
      ZeroConfig config{.stage = stage};
      HostWorld world({.world_size = world_size});
      const std::vector<double> behind = gradients_of(config, world);
      config.overlap_comm = true;
      for (const std::int64_t elements : {2, 6, 10, 1000}) {
        config.allgather_bucket_size = elements;
        EXPECT_EQ(gradients_of(config, world), behind)
            << stage << " " << world_size << " " << elements;
      }
    }
}

// How much of what was queued on the gathers' stream the computation waits for.
class GatherWaits final : public AccessObserver {
 public:
  bool has_run_ahead() const { return has_run_ahead_; }
  std::int64_t writes() const { return writes_; }
  // What the computation has not waited for.
  std::int64_t on_the_way() const { return writes_ - awaited_; }

  void on_access(const Access& access) override {
    if (access.stream == kGathers && access.is_write) ++writes_;
  }
  void on_record(StreamId stream, StreamEvent event) override {
    if (stream == kGathers) writes_before_[event] = writes_;
  }
  void on_wait(StreamId stream, StreamEvent event) override {
    const auto at = writes_before_.find(event);
    if (stream != kCompute || at == writes_before_.end()) return;
    has_run_ahead_ = has_run_ahead_ || at->second < writes_;
    awaited_ = std::max(awaited_, at->second);
  }
  void on_host_wait(StreamEvent) override {}
  void on_record_use(StreamId, const TensorImpl&) override {}
  void on_free(const Storage&) override {}

 private:
  static constexpr StreamId kCompute{static_cast<std::int32_t>(StreamRole::compute)};
  static constexpr StreamId kGathers{static_cast<std::int32_t>(StreamRole::all_gather)};

  std::int64_t writes_ = 0;
  std::int64_t awaited_ = 0;
  std::map<StreamEvent, std::int64_t> writes_before_;
  bool has_run_ahead_ = false;
};

TEST(OverlappedGathers, Of_parameters_ahead_hold_up_no_fetch) {
  GatherWaits waits;
  HostWorldOptions options{.world_size = 2};
  options.observers.resize(2);
  options.observers[0].accesses = &waits;
  HostWorld world(options);
  ZeroConfig config{.stage = 3};
  config.stage3_param_persistence_threshold = 0;
  config.stage3_prefetch_bucket_size = 4;
  config.stage3_max_reuse_distance = 0;
  gradients_of(config, world);
  EXPECT_TRUE(waits.has_run_ahead());
}

// Of stages 1 and 2, in pieces of so many elements.
ZeroConfig ahead(int stage, std::int64_t elements) {
  ZeroConfig config{.stage = stage};
  config.overlap_comm = true;
  config.allgather_bucket_size = elements;
  return config;
}

// One rank of a run that gathers ahead.
class AheadRun {
 public:
  AheadRun(Runtime& runtime, nn::Module& module, const ZeroConfig& config,
           bool gathers_ahead = true)
      : runtime_(runtime),
        autograd_(runtime.ops()),
        module_(module),
        engine_(
            Engine::initialize(autograd_, module, config, runtime, {.gathers_ahead = gathers_ahead})
                .value()) {}

  Engine& engine() { return *engine_; }
  nn::Module& module() { return module_; }
  Tensor forward() {
    const Tensor x = runtime_.ops().place(filled({2, 4}, 0.01 * runtime_.rank()));
    return engine_->forward(x);
  }
  void iterate() {
    engine_->backward(forward());
    engine_->step();
  }
  // The parameters as a read outside any module sees them now.
  std::vector<double> parameters() {
    std::vector<double> values;
    for (const nn::NamedParameter& parameter : module_.named_parameters()) {
      const std::vector<double> more =
          runtime_.kernels().read(runtime_.stream(StreamRole::compute), Span::of(parameter.tensor));
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  }

 private:
  Runtime& runtime_;
  Autograd autograd_;
  nn::Module& module_;
  std::unique_ptr<Engine> engine_;
};

template <class Model>
std::vector<double> trained(Runtime& runtime, const ZeroConfig& config, bool gathers_ahead) {
  Model model;
  AheadRun run(runtime, model, config, gathers_ahead);
  for (int step = 0; step < kSteps; ++step) run.iterate();
  run.engine().gather_parameters();
  std::vector<double> values = run.parameters();
  run.iterate();
  run.forward();
  const std::vector<double> behind_forward = run.parameters();
  values.insert(values.end(), behind_forward.begin(), behind_forward.end());
  return values;
}

using Trained = std::vector<double> (*)(Runtime& runtime, const ZeroConfig& config,
                                        bool gathers_ahead);
constexpr std::array<Trained, 3> kAheadModels = {trained<MlpModel>, trained<BorrowingModel>,
                                                 trained<TwoLossModel>};

TEST(GathersAhead, Give_the_bits_of_gathers_behind_the_update) {
  for (const int stage : {1, 2})
    for (const int world_size : {2, 3})
      for (const std::int64_t elements : {2, 6, 10, 1000})
        for (const std::int64_t forwards : {1, 2}) {
          ZeroConfig config = ahead(stage, elements);
          config.gradient_accumulation_steps = forwards;
          HostWorld world({.world_size = world_size});
          world.run([&](Runtime& runtime) {
            for (const Trained of : kAheadModels)
              EXPECT_EQ(of(runtime, config, true), of(runtime, config, false))
                  << stage << " " << world_size << " " << elements << " " << forwards;
          });
        }
}

// The simulator runs gathers as late as it likes, and a layer that did not wait computes with what
// was there before.
TEST(GathersAhead, Are_waited_for_by_their_modules_in_every_order) {
  constexpr int kGatherOrders = 20;
  RandomScheduler scheduler(3);
  for (const Trained of : kAheadModels)
    for (const bool is_late : {false, true})
      for (int order = 0; order < kGatherOrders; ++order) {
        const ZeroConfig config = ahead(1 + order % 2, 2 + 4 * (order % 3));
        std::vector<double> wanted;
        HostWorld({.world_size = 2}).run([&](Runtime& runtime) {
          const std::vector<double> values = of(runtime, config, false);
          if (runtime.rank() == 0) wanted = values;
        });
        scheduler.new_execution();
        std::vector<StreamOrderCheck> checks(2);
        SimWorldOptions options{.world_size = 2, .has_late_compute = is_late};
        options.observers = {{.accesses = &checks[0]}, {.accesses = &checks[1]}};
        options.preemption = Preemption::at_every_call;
        {
          SimWorld world(options, scheduler);
          world.run([&](Runtime& runtime) { EXPECT_EQ(of(runtime, config, true), wanted); });
          EXPECT_TRUE(world.findings().empty());
        }
        scheduler.end_execution({});
        for (StreamOrderCheck& check : checks) {
          check.finish();
          for (const Verdict& verdict : check.verdicts()) EXPECT_TRUE(verdict.findings.empty());
        }
      }
}

// What one rank's gathers write, iteration by iteration.
class AheadCase : public ::testing::Test {
 protected:
  void run(const std::function<void(AheadRun& run, CapturingRuntime& runtime)>& body) {
    HostWorldOptions options{.world_size = 2};
    options.observers.resize(2);
    options.observers[0].accesses = &waits_;
    HostWorld world(options);
    world.run([&](Runtime& inner) {
      CapturingRuntime runtime(inner);
      MlpModel model;
      AheadRun run(runtime, model, ahead(2, 6));
      body(run, runtime);
    });
  }
  // Of rank 0, since the last call.
  std::int64_t new_writes() { return waits_.writes() - std::exchange(known_, waits_.writes()); }

  GatherWaits waits_;
  std::int64_t known_ = 0;
};

TEST_F(AheadCase, Layers_wait_for_their_own) {
  std::int64_t at_first = 0;
  std::int64_t at_last = 0;
  run([&](AheadRun& of, Runtime& runtime) {
    const bool is_watched = runtime.rank() == 0;
    for (const nn::NamedModule& layer : of.module().named_modules())
      if (is_watched && layer.module->own_parameters().size() == 2)
        layer.module->register_forward_pre_hook([&, is_first = layer.name == "l1"](auto&) {
          (is_first ? at_first : at_last) = waits_.on_the_way();
          return TensorList();
        });
    for (int step = 0; step < 2; ++step) {
      of.iterate();
      if (is_watched) {
        EXPECT_EQ(waits_.on_the_way(), 0) << "behind a step";
      }
    }
    of.forward();
    if (is_watched) {
      EXPECT_EQ(waits_.on_the_way(), 0) << "behind a forward";
    }
  });
  EXPECT_GT(at_first, at_last) << "the second layer needs more";
}

// A replay finds what the one before it left. So the iteration that is captured gathers, too,
// though no gather had been left for it.
TEST_F(AheadCase, Captured_iterations_gather_behind_one_that_left_nothing) {
  run([this](AheadRun& of, CapturingRuntime& runtime) {
    of.iterate();
    if (runtime.rank() == 0) new_writes();
    of.iterate();
    const std::int64_t usual = runtime.rank() == 0 ? new_writes() : 0;
    of.engine().gather_parameters();
    if (runtime.rank() == 0) new_writes();
    EXPECT_TRUE(of.engine().capture([&] { of.iterate(); }));
    if (runtime.rank() == 0) {
      EXPECT_EQ(new_writes(), usual);
    }
    of.engine().gather_parameters();
    of.engine().replay();
    if (runtime.rank() == 0) new_writes();
    of.engine().gather_parameters();
    if (runtime.rank() == 0) {
      EXPECT_GT(new_writes(), 0) << "of what the replay left";
    }
  });
}

TEST_F(AheadCase, Captures_that_fail_leave_what_they_found) {
  run([this](AheadRun& of, CapturingRuntime& runtime) {
    of.iterate();
    const auto fails = [&] {
      of.forward();
      throw RuntimeFault("in the middle");
    };
    EXPECT_THROW((void)of.engine().capture(fails), RuntimeFault);
    if (runtime.rank() == 0) new_writes();
    of.engine().gather_parameters();
    if (runtime.rank() == 0) {
      EXPECT_GT(new_writes(), 0);
    }
    of.engine().zero_grad();
    of.iterate();
  });
}

}  // namespace
}  // namespace zeroproof
