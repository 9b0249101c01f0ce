// Checkpoints that several tensor-parallel ranks save, and saves that take longer than the ranks'
// time-out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>

#include "engine/files/forwarding_files.h"
#include "engine/files/posix_file_system.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "tests/scratch_path.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

// One linear layer; `first` makes the values.
class OneLinear final : public nn::Module {
 public:
  OneLinear(std::int64_t out, double first)
      : layer_(register_module("fc", std::make_shared<nn::Linear>(trainable({out, 4}, first),
                                                                  trainable({out}, first)))) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean_square(ag, (*layer_)(ag, inputs.at(0)))};
  }

 private:
  std::shared_ptr<nn::Linear> layer_;
};

struct Saved {
  std::vector<std::string> errors;  // by rank; empty: it saved
  std::vector<Values> weights;
};

// Each tensor-parallel rank has a layer of three rows. Parts differ where `first` says so.
Saved save_parts(const std::string& folder, const EngineCheckpointOptions& options, double first) {
  Saved saved{.errors = std::vector<std::string>(4), .weights = std::vector<Values>(4)};
  HostWorld world({.world_size = 4, .degrees = {.tensor = 2}});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    const int part = runtime.group(GroupKind::tensor).rank();
    OneLinear model(3, 0.01 + first * part);
    auto engine = Engine::initialize(ag, model, {.stage = 1}, runtime).value();
    engine->backward(engine->forward(filled({2, 4}, 0.1)));
    engine->step();
    const auto outcome = engine->save_checkpoint(folder, options);
    const auto rank = static_cast<std::size_t>(runtime.rank());
    if (!outcome) saved.errors[rank] = outcome.error().text;
    saved.weights[rank] = engine->full_parameters().at(0).values;
  });
  return saved;
}

// As the engines of a world without tensor parallelism see it.
Values load_whole(const std::string& folder, std::int64_t rows) {
  Values weight;
  HostWorld({.world_size = 2}).run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    OneLinear model(rows, 0.7);
    auto engine = Engine::initialize(ag, model, {.stage = 2}, runtime).value();
    const auto loaded = engine->load_checkpoint(folder);
    EXPECT_TRUE(loaded) << loaded.error().text;
    const auto values = engine->full_parameters();
    if (runtime.rank() == 0) weight = values.at(0).values;
  });
  return weight;
}

TEST(ParallelCheckpoint, Of_replicas_is_one_that_any_world_loads) {
  const std::string folder = scratch_path("parallel_replicas");
  const EngineCheckpointOptions options{.other_parameters = {.kind = PartitionKind::replicated}};
  for (int again = 0; again < 10; ++again) {
    const Saved saved = save_parts(folder, options, 0.0);
    for (const std::string& error : saved.errors) EXPECT_EQ("", error);
    EXPECT_EQ(saved.weights[0], load_whole(folder, 3));
  }
  std::filesystem::remove_all(folder);
}

TEST(ParallelCheckpoint, Of_parts_is_the_whole) {
  const std::string folder = scratch_path("parallel_parts");
  const EngineCheckpointOptions options{.other_parameters = {.kind = PartitionKind::sliced}};
  const Saved saved = save_parts(folder, options, 0.25);
  for (const std::string& error : saved.errors) EXPECT_EQ("", error);
  Values whole = saved.weights[0];
  EXPECT_NE(saved.weights[0], saved.weights[1]);
  whole.insert(whole.end(), saved.weights[1].begin(), saved.weights[1].end());
  EXPECT_EQ(whole, load_whole(folder, 6));
  std::filesystem::remove_all(folder);
}

TEST(ParallelCheckpoint, Needs_a_rule_for_each_parameter) {
  const std::string folder = scratch_path("parallel_no_rule");
  const Saved saved = save_parts(folder, {}, 0.25);
  EXPECT_THAT(saved.errors[0], HasSubstr("'fc.weight' cannot be saved: no partition rule"));
  EXPECT_THAT(saved.errors[1], HasSubstr("'fc.weight' cannot be saved: no partition rule"));
  EXPECT_THAT(saved.errors[2], HasSubstr("another rank could not"));
  EXPECT_THAT(saved.errors[3], HasSubstr("another rank could not"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/latest"));
  std::filesystem::remove_all(folder);
}

// The machine's files on a disk that stands still at its first operation of a kind.
class SlowFiles final : public ForwardingFiles<FileSystem> {
 public:
  explicit SlowFiles(std::chrono::milliseconds pause)
      : ForwardingFiles(posix_file_system()), pause_(pause) {}

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    stand_still(has_created_);
    return ForwardingFiles::create(path);
  }
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    stand_still(has_read_);
    return ForwardingFiles::read(path, bytes_max);
  }

 private:
  void stand_still(bool& has_happened) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(has_happened, true)) return;
    }
    std::this_thread::sleep_for(pause_);
  }

  std::chrono::milliseconds pause_;
  std::mutex mutex_;
  bool has_created_ = false;
  bool has_read_ = false;
};

TEST(ParallelCheckpoint, May_take_longer_than_ranks_wait_for_each_other) {
  const std::string folder = scratch_path("slow_disk");
  constexpr std::int64_t kTimeoutMs = 2'000;  // ranks meet every 200
  SlowFiles files(std::chrono::milliseconds(4'000));
  HostWorld world({.world_size = 2, .timeout_ms = kTimeoutMs});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    OneLinear model(3, 0.1);
    auto engine = Engine::initialize(ag, model, {.stage = 2}, runtime).value();
    const auto saved = engine->save_checkpoint(folder, {.files = &files});
    EXPECT_TRUE(saved) << saved.error().text;
    const auto loaded = engine->load_checkpoint(folder, {.files = &files});
    EXPECT_TRUE(loaded) << loaded.error().text;
  });
  std::filesystem::remove_all(folder);
}

// A rank whose disk throws ends; the one that waits for it hears of it.
TEST(ParallelCheckpoint, Ends_on_all_ranks_when_a_rank_fails_meanwhile) {
  const std::string folder = scratch_path("failing_rank");
  SlowFiles files(std::chrono::milliseconds(400));
  HostWorld world({.world_size = 2});
  const auto errors = world.try_run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    OneLinear model(3, 0.1);
    auto engine = Engine::initialize(ag, model, {.stage = 2}, runtime).value();
    if (runtime.rank() == 1) throw std::runtime_error("a defect of rank 1");
    EXPECT_TRUE(engine->save_checkpoint(folder, {.files = &files}));
  });
  EXPECT_TRUE(errors[0]);
  EXPECT_TRUE(errors[1]);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zeroproof
