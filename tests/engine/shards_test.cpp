// Checkpoints of the ranks' own shards: any world and stage loads them, block by block, and a
// damaged file does not change the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/checkpoint/shard_blocks.h"
#include "engine/checkpoint/shard_load.h"
#include "engine/checkpoint/shards.h"
#include "engine/runtime/host/shared_files.h"
#include "model/cpu_ops.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

// Of ranks that are threads.
struct SharedMemoryFiles {
  MemoryFileSystem inner;
  SharedFiles shared{inner};
};

struct ShardCase {
  int ranks = 2;
  int stage = 3;
  OptimizerType optimizer = OptimizerType::adam;
};

ZeroConfig shards_config(const ShardCase& of) {
  ZeroConfig config{.stage = of.stage};
  config.bf16 = {.enabled = true, .check_grad_overflow = false};
  config.optimizer.type = of.optimizer;
  config.optimizer.sgd.momentum = 0.9;
  return config;
}

struct ShardOutcome {
  std::vector<FullTensor> parameters;
  std::vector<FullTensor> states;
  std::int64_t steps = 0;
  std::vector<std::string> errors;  // by rank
};

// `before` and `after` steps around a save or load, or neither.
ShardOutcome run_engine(const ShardCase& of, int before,
                        const std::function<Result<void>(Engine&)>& act, int after) {
  ShardOutcome outcome;
  outcome.errors.resize(static_cast<std::size_t>(of.ranks));
  HostWorld({.world_size = of.ranks}).run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    auto engine = Engine::initialize(ag, model, shards_config(of), runtime).value();
    const auto step = [&] {
      const Tensor x = ops.cast(filled({2, 4}, 0.1), DType::bfloat16);
      engine->backward(engine->forward(x));
      engine->step();
    };
    for (int i = 0; i < before; ++i) step();
    if (const auto done = act(*engine); !done)
      outcome.errors[static_cast<std::size_t>(runtime.rank())] = done.error().text;
    for (int i = 0; i < after; ++i) step();
    auto parameters = engine->full_parameters();
    auto states = engine->full_optimizer_state();
    if (runtime.rank() != 0) return;
    std::ranges::sort(states, {}, &FullTensor::name);
    std::ranges::sort(parameters, {}, &FullTensor::name);
    outcome.parameters = std::move(parameters);
    outcome.states = std::move(states);
    outcome.steps = engine->global_steps();
  });
  return outcome;
}

void expect_same(const std::vector<FullTensor>& a, const std::vector<FullTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].values, b[i].values) << a[i].name;
  }
}

EngineCheckpointOptions shards_in(FileSystem& files) {
  return {.files = &files, .layout = CheckpointLayout::shards};
}

TEST(Shards, Are_loaded_by_any_number_of_ranks_and_any_stage) {
  for (const OptimizerType optimizer : {OptimizerType::adam, OptimizerType::sgd})
    for (const ShardCase& saved : {ShardCase{1, 0}, {2, 1}, {3, 2}, {4, 3}, {3, 0}}) {
      SharedMemoryFiles files;
      const auto save = [&](Engine& engine) {
        return engine.save_checkpoint("run", shards_in(files.shared));
      };
      const auto load = [&](Engine& engine) {
        return engine.load_checkpoint("run", shards_in(files.shared));
      };
      const ShardOutcome wanted = run_engine({saved.ranks, saved.stage, optimizer}, 2, save, 0);
      for (const std::string& error : wanted.errors) EXPECT_EQ("", error);
      for (const ShardCase& loaded : {ShardCase{1, 3}, {4, 1}, {3, 3}, {2, 0}, {4, 2}}) {
        SCOPED_TRACE(std::to_string(saved.ranks) + " stage " + std::to_string(saved.stage) +
                     " -> " + std::to_string(loaded.ranks) + " stage " +
                     std::to_string(loaded.stage));
        const ShardOutcome found = run_engine({loaded.ranks, loaded.stage, optimizer}, 1, load, 0);
        for (const std::string& error : found.errors) EXPECT_EQ("", error);
        expect_same(wanted.parameters, found.parameters);
        expect_same(wanted.states, found.states);
        EXPECT_EQ(2, found.steps);
      }
    }
}

TEST(Shards, Go_on_as_if_nothing_had_been_saved) {
  for (const int stage : {0, 1, 2, 3}) {
    SharedMemoryFiles files;
    const ShardCase of{2, stage};
    const auto save = [&](Engine& engine) {
      return engine.save_checkpoint("run", shards_in(files.shared));
    };
    const auto load = [&](Engine& engine) {
      return engine.load_checkpoint("run", shards_in(files.shared));
    };
    const ShardOutcome straight = run_engine(of, 2, save, 2);
    expect_same(straight.parameters, run_engine(of, 0, load, 2).parameters);
  }
}

TEST(Shards, Are_told_from_whole_tensors) {
  SharedMemoryFiles files;
  const ShardCase of{2, 2};
  run_engine(
      of, 1, [&](Engine& engine) { return engine.save_checkpoint("run", shards_in(files.shared)); },
      0);
  const auto as_whole = run_engine(
      of, 0,
      [&](Engine& engine) { return engine.load_checkpoint("run", {.files = &files.shared}); }, 0);
  EXPECT_THAT(as_whole.errors[0], HasSubstr("load it with the layout of shards"));
  run_engine(
      of, 1,
      [&](Engine& engine) { return engine.save_checkpoint("whole", {.files = &files.shared}); }, 0);
  const auto as_shards = run_engine(
      of, 0,
      [&](Engine& engine) { return engine.load_checkpoint("whole", shards_in(files.shared)); }, 0);
  EXPECT_THAT(as_shards.errors[0], HasSubstr("load it with the universal layout"));
}

TEST(Shards, That_are_damaged_change_nothing) {
  SharedMemoryFiles files;
  const ShardCase of{2, 3};
  run_engine(
      of, 2, [&](Engine& engine) { return engine.save_checkpoint("run", shards_in(files.shared)); },
      0);
  const ShardOutcome fresh = run_engine(
      of, 0, [](Engine&) { return Result<void>(); }, 0);
  int damaged = 0;
  for (const std::string& path : files.inner.all_files()) {
    const std::string right = files.inner.bytes_of(path);
    for (const bool is_cut : {false, true}) {
      std::string wrong = right;
      if (is_cut)
        wrong.resize(right.size() / 2);
      else
        wrong[right.size() / 2] = static_cast<char>(wrong[right.size() / 2] ^ 4);
      files.inner.set_bytes(path, wrong);
      const auto loaded = run_engine(
          of, 0,
          [&](Engine& engine) { return engine.load_checkpoint("run", shards_in(files.shared)); },
          0);
      EXPECT_TRUE(std::ranges::any_of(loaded.errors, [&](const std::string& error) {
        return error.find(path.substr(path.rfind('/'))) != std::string::npos;
      })) << path;
      for (const std::string& error : loaded.errors) EXPECT_NE("", error) << path;
      expect_same(fresh.parameters, loaded.parameters);
      ++damaged;
    }
    files.inner.set_bytes(path, right);
  }
  EXPECT_LT(20, damaged);
}

// Reads and writes go by blocks, however large a tensor is.
TEST(Shards, Hold_no_more_than_a_block) {
  SharedMemoryFiles files;
  constexpr std::int64_t kElements = 3 * kBlockElements / 2;
  Tensor memory = Tensor::full({kElements}, 1.5, DType::float32);
  std::int64_t largest = 0;
  const ShardValues values{.read =
                               [&](const Span& from) {
                                 largest = std::max(largest, from.elements);
                                 return std::vector<double>(static_cast<std::size_t>(from.elements),
                                                            2.5);
                               },
                           .write =
                               [&](const Span& to, const std::vector<double>& given) {
                                 largest = std::max(largest, to.elements);
                                 EXPECT_EQ(std::ssize(given), to.elements);
                                 EXPECT_EQ(2.5, given.front());
                               }};
  ShardState state{.shards = {{"w", "fp32", {kElements}, 0, Span::of(memory)}},
                   .steps = {{"w", 3}},
                   .data = {0, 1}};
  ASSERT_TRUE(save_shards(state, values, files.shared, "run", {}));
  const auto load = ShardLoad::open(files.shared, "run", "", {});
  ASSERT_TRUE(load) << load.error().text;
  EXPECT_EQ(3, load->steps().at("w"));
  const auto right = load->check(state.shards, {});
  ASSERT_TRUE(right) << right.error().text;
  ASSERT_TRUE(load->apply(state.shards, values));
  EXPECT_EQ(kBlockElements, largest);
  state.shards[0].sizes = {kElements / 2, 2};
  EXPECT_THAT(load->check(state.shards, {}).error().text,
              HasSubstr("'w/fp32' does not fit: shape"));
  state.shards[0].parameter = "v";
  EXPECT_THAT(load->check(state.shards, {}).error().text, HasSubstr("has no parameter 'v'"));
}

TEST(Shards, With_a_gap_or_an_overlap_are_no_checkpoint) {
  const auto block = [](std::int64_t begin, std::int64_t elements) {
    return ShardBlock{
        .parameter = "w", .key = "fp32", .sizes = {10}, .begin = begin, .elements = elements};
  };
  const auto is_one = [&](std::vector<ShardBlock> first, std::vector<ShardBlock> second) {
    return ShardIndex::make({{std::move(first), {}}, {std::move(second), {}}}, {}, "run")
        .has_value();
  };
  EXPECT_TRUE(is_one({block(4, 6)}, {block(0, 4)}));
  EXPECT_FALSE(is_one({block(5, 5)}, {block(0, 4)}));
  EXPECT_FALSE(is_one({block(3, 7)}, {block(0, 4)}));
  EXPECT_FALSE(is_one({block(0, 4)}, {}));
}

}  // namespace
}  // namespace zeroproof
