// Shards that other numbers of tensor-parallel ranks load: what a rank gets is what it gets of the
// same state in whole tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/convert_checkpoint.h"
#include "engine/checkpoint/shard_load.h"
#include "engine/checkpoint/tensor_parallel.h"
#include "engine/runtime/host/shared_files.h"
#include "model/cpu_ops.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/support/small_models.h"
#include "tests/engine/training_states.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

// One parameter "w" with a moment, which `ranks` save by `rule`.
struct SavedCase {
  Shape sizes;
  PartitionRule rule;
  int ranks = 1;
};

FullTensor counted_tensor(const std::string& name, const Shape& sizes, double first) {
  FullTensor tensor{name, sizes, {}};
  for (std::int64_t i = 0; i < numel(sizes); ++i)
    tensor.values.push_back(first + static_cast<double>(i));
  return tensor;
}

// In small cases too, which inRange would give the first.
int any_degree() {
  return *rc::gen::element(1, 2, 3, 4);
}

// What can be cut by 1, 2, 3 and 4 along its axis.
SavedCase any_case() {
  constexpr std::int64_t kWidth = 12;
  SavedCase of{.ranks = any_degree()};
  const auto axes = *rc::gen::inRange(1, 4);
  for (int axis = 0; axis < axes; ++axis) of.sizes.push_back(*rc::gen::inRange(1, 4));
  of.rule.axis = *rc::gen::inRange(0, axes);
  of.rule.kind = *rc::gen::element(PartitionKind::sliced, PartitionKind::vocabulary,
                                   PartitionKind::replicated);
  if (of.rule.kind == PartitionKind::sliced) {
    of.sizes[static_cast<std::size_t>(of.rule.axis)] = kWidth;
    if (*rc::gen::arbitrary<bool>()) of.sizes[static_cast<std::size_t>(of.rule.axis)] = 3 * kWidth;
    if (*rc::gen::arbitrary<bool>()) {
      of.rule.sub_parameters = {kWidth, kWidth, kWidth};
      of.sizes[static_cast<std::size_t>(of.rule.axis)] = 3 * kWidth;
    }
  }
  if (of.rule.kind == PartitionKind::vocabulary) of.sizes[0] = *rc::gen::inRange(1, 10);
  return of;
}

TrainingState part_of(const SavedCase& of, int rank) {
  const ParallelPlace place{.tensor = {rank, of.ranks}, .expert = {}};
  TrainingState state{.groups = {{.parameters = {"w"}}}, .partition_rules = {{"w", of.rule}}};
  state.parameters = {cut_tensor(counted_tensor("w", of.sizes, 1), of.rule, place, {})->tensor};
  state.optimizer_state = {
      cut_tensor(counted_tensor("w/exp_avg", of.sizes, 1000), of.rule, place, {})->tensor};
  return state;
}

// The elements [begin, end) of each state, as a load writes them; the states lie one after another.
std::vector<double> loaded_elements(const ShardLoad& load, const TrainingState& wanted,
                                    std::int64_t begin, std::int64_t end) {
  const std::int64_t elements = end - begin;
  Tensor memory = Tensor::full({2 * elements}, 0.0, DType::float32);
  const Span all = Span::of(memory);
  const Shape& sizes = wanted.parameters[0].sizes;
  const std::vector<StateShard> shards = {
      {"w", "fp32", sizes, begin, all.part(0, elements)},
      {"w", "exp_avg", sizes, begin, all.part(elements, elements)}};
  const auto right = load.check(shards, {{"w"}});
  RC_ASSERT(right.has_value());
  std::vector<double> written(static_cast<std::size_t>(2 * elements), -1.0);
  const auto write = [&](const Span& to, const std::vector<double>& values) {
    std::ranges::copy(values, written.begin() + (to.begin - all.begin));
  };
  RC_ASSERT(load.apply(shards, {.read = {}, .write = write}).has_value());
  return written;
}

RC_GTEST_PROP(ShardLoad, Of_another_tensor_degree_is_a_load_of_whole_tensors, ()) {
  const SavedCase of = any_case();
  MemoryFileSystem files;
  std::vector<TrainingState> parts;
  for (int rank = 0; rank < of.ranks; ++rank) parts.push_back(part_of(of, rank));
  for (const auto& saved : save_parts(parts, files, {}, {.tensor = of.ranks}))
    RC_ASSERT(saved.has_value());
  const int data_ranks = *rc::gen::inRange(1, 4);
  RC_ASSERT(convert_checkpoint(files, "run", "shards", {.data_ranks = data_ranks}).has_value());

  const int ranks = any_degree();
  const ParallelRank rank{*rc::gen::inRange(0, ranks), ranks};
  const auto wanted = load_checkpoint(files, "run", {.tensor_parallel = rank});
  RC_ASSERT(wanted.has_value());
  const auto load = ShardLoad::open(files, "shards", "", rank);
  RC_ASSERT(load.has_value());
  const std::int64_t all = numel(wanted->parameters[0].sizes);
  const std::int64_t begin = *rc::gen::inRange<std::int64_t>(0, all + 1);
  const std::int64_t end = *rc::gen::inRange<std::int64_t>(begin, all + 1);
  std::vector<double> expected;
  for (const auto& values : {wanted->parameters[0].values, wanted->optimizer_state[0].values})
    expected.insert(expected.end(), values.begin() + begin, values.begin() + end);
  RC_ASSERT(expected == loaded_elements(*load, *wanted, begin, end));
}

TEST(ShardLoad, Names_what_does_not_fit) {
  const auto problem = [](const SavedCase& of, ParallelRank rank, const Shape& wanted) {
    MemoryFileSystem files;
    std::vector<TrainingState> parts;
    for (int saved = 0; saved < of.ranks; ++saved) parts.push_back(part_of(of, saved));
    save_parts(parts, files, {}, {.tensor = of.ranks});
    EXPECT_TRUE(convert_checkpoint(files, "run", "shards", {.data_ranks = 2}));
    const auto load = ShardLoad::open(files, "shards", "", rank);
    Tensor memory = Tensor::full(wanted, 0.0, DType::float32);
    const std::vector<StateShard> shards = {{"w", "fp32", wanted, 0, Span::of(memory)},
                                            {"w", "exp_avg", wanted, 0, Span::of(memory)}};
    const auto checked = load->check(shards, {{"w"}});
    return checked ? std::string() : checked.error().text;
  };
  const SavedCase rows{{12, 2}, {.kind = PartitionKind::sliced}, 2};
  EXPECT_EQ("", problem(rows, {0, 3}, {4, 2}));
  EXPECT_THAT(problem(rows, {0, 5}, {4, 2}),
              HasSubstr("'w/fp32' does not fit: 12 along axis 0 do not divide"));
  EXPECT_THAT(problem(rows, {0, 3}, {12, 2}),
              HasSubstr("shape [4, 2] (whole: [12, 2]) where this engine has [12, 2]"));
  const SavedCase alike{{4}, {.kind = PartitionKind::replicated}, 2};
  EXPECT_EQ("", problem(alike, {2, 3}, {4}));
}

// An engine with `rows` of a layer on each tensor-parallel rank.
class RowsModel final : public nn::Module {
 public:
  RowsModel(std::int64_t rows, double first)
      : layer_(register_module("fc", std::make_shared<nn::Linear>(trainable({rows, 4}, first),
                                                                  trainable({rows}, first)))) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean_square(ag, (*layer_)(ag, inputs.at(0)))};
  }

 private:
  std::shared_ptr<nn::Linear> layer_;
};

struct Degrees {
  int world = 4;
  int tensor = 2;
  int stage = 1;
};

// A step, then a save or load; the weights of the tensor-parallel ranks, one after another.
std::vector<double> rows_after(const Degrees& of, const std::function<Result<void>(Engine&)>& act) {
  std::vector<std::vector<double>> parts(static_cast<std::size_t>(of.tensor));
  HostWorld world({.world_size = of.world, .degrees = {.tensor = of.tensor}});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    const int part = runtime.group(GroupKind::tensor).rank();
    RowsModel model(12 / of.tensor, 0.01 + 0.25 * part);
    auto engine = Engine::initialize(ag, model, {.stage = of.stage}, runtime).value();
    engine->backward(engine->forward(filled({2, 4}, 0.1)));
    engine->step();
    const auto done = act(*engine);
    EXPECT_TRUE(done) << done.error().text;
    const auto weights = engine->full_parameters().at(0).values;
    if (runtime.group(GroupKind::data).rank() == 0) parts[static_cast<std::size_t>(part)] = weights;
  });
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(ShardLoad, Reshards_world_stage_and_tensor_degree_of_engines) {
  MemoryFileSystem memory;
  SharedFiles files(memory);
  const EngineCheckpointOptions options{.files = &files,
                                        .layout = CheckpointLayout::shards,
                                        .other_parameters = {.kind = PartitionKind::sliced}};
  const auto save = [&](Engine& engine) { return engine.save_checkpoint("run", options); };
  const auto load = [&](Engine& engine) { return engine.load_checkpoint("run", options); };
  const std::vector<double> saved = rows_after({4, 2, 1}, save);
  for (const Degrees& of : {Degrees{1, 1, 0}, {2, 1, 3}, {4, 4, 1}, {6, 3, 3}, {2, 2, 2}})
    EXPECT_EQ(saved, rows_after(of, load)) << of.world << " ranks, tensor " << of.tensor;
}

}  // namespace
}  // namespace zeroproof
