#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/tensor_parallel.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/training_states.h"

namespace zeroproof {
namespace {

const LoadOptions kAlone = {.tensor_parallel = ParallelRank{}};

DType any_dtype() {
  return *rc::gen::element(DType::float64, DType::float32, DType::bfloat16, DType::float16);
}

// P87. Stored in a dtype that has the values, or in one that has not: the same bits come back.
RC_GTEST_PROP(CheckpointRoundTrip, Reproduces_every_state_bit_for_bit, ()) {
  MemoryFileSystem files;
  const TrainingState state = any_state(any_dtype());
  RC_ASSERT(save_checkpoint(state, files, "run", {.dtype = any_dtype()}).has_value());
  const auto loaded = load_checkpoint(files, "run", kAlone);
  RC_ASSERT(loaded.has_value());
  RC_ASSERT(is_same_state(*loaded, state));

  LoadOptions options = kAlone;
  options.targets = targets_of(state);
  std::ranges::reverse(options.targets->parameters);
  const auto reversed = load_checkpoint(files, "run", options);
  RC_ASSERT(reversed.has_value());
  RC_ASSERT(std::ranges::equal(reversed->parameters.rbegin(), reversed->parameters.rend(),
                               state.parameters.begin(), state.parameters.end(), is_same_tensor));
}

TEST(CheckpointRoundTrip, Stores_float32_values_in_four_bytes) {
  MemoryFileSystem files;
  ASSERT_TRUE(save_checkpoint(small_state(3, 0.5), files, "run"));
  const std::string bytes = files.bytes_of("run/global_step3/zero/fc.weight/exp_avg.tensor");
  const std::string header = bytes.substr(0, bytes.find('\n'));
  EXPECT_EQ(header,
            R"({"dtype":"float32","name":"fc.weight%2Fexp_avg","schema":"zeroproof.tensor/1",)"
            R"("shape":[2,3]})");
  EXPECT_EQ(bytes.size(), header.size() + 1 + 6 * 4);
}

// A shard of a data-parallel rank as stage 3 holds it: padded to world * ceil(n / world).
std::vector<std::vector<double>> sharded(const std::vector<double>& whole, std::size_t world) {
  const std::size_t share = (whole.size() + world - 1) / world;
  std::vector<double> padded = whole;
  padded.resize(share * world, 0.0);
  std::vector<std::vector<double>> shards;
  for (std::size_t r = 0; r < world; ++r) {
    const auto begin = padded.begin() + static_cast<std::ptrdiff_t>(r * share);
    shards.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(share));
  }
  return shards;
}

std::vector<double> gathered(const std::vector<std::vector<double>>& shards, std::size_t count) {
  std::vector<double> whole;
  for (const auto& shard : shards) whole.insert(whole.end(), shard.begin(), shard.end());
  whole.resize(count);
  return whole;
}

RC_GTEST_PROP(CheckpointRoundTrip, Saved_by_any_world_size_and_loaded_by_any_other, ()) {
  MemoryFileSystem files;
  const TrainingState state = any_state(DType::float32);
  TrainingState collected = state;
  const auto save_world = *rc::gen::inRange<std::size_t>(1, 9);
  for (FullTensor& tensor : collected.parameters) {
    tensor.values = gathered(sharded(tensor.values, save_world), tensor.values.size());
  }
  RC_ASSERT(save_checkpoint(collected, files, "run").has_value());
  const auto loaded = load_checkpoint(files, "run", kAlone);
  RC_ASSERT(loaded.has_value());
  const auto load_world = *rc::gen::inRange<std::size_t>(1, 9);
  for (std::size_t i = 0; i < state.parameters.size(); ++i) {
    FullTensor again = loaded->parameters[i];
    again.values = gathered(sharded(again.values, load_world), again.values.size());
    RC_ASSERT(is_same_tensor(again, state.parameters[i]));
  }
}

TEST(CheckpointTensorParallel, Without_a_group_is_warned_about_once) {
  MemoryFileSystem files;
  ASSERT_TRUE(save_checkpoint(small_state(1, 0.5), files, "run"));
  std::vector<std::string> warnings;
  LoadOptions options;
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  ASSERT_TRUE(load_checkpoint(files, "run", options));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "run: no tensor-parallel group was given: loading as the only rank of one");
  options.tensor_parallel = ParallelRank{};
  ASSERT_TRUE(load_checkpoint(files, "run", options));
  EXPECT_EQ(warnings.size(), 1U);
}

FullTensor counted(const Shape& sizes) {
  FullTensor tensor{"w", sizes, {}};
  for (std::int64_t i = 0; i < numel(sizes); ++i) {
    tensor.values.push_back(static_cast<double>(i + 1));
  }
  return tensor;
}

std::vector<double> cut_values(const FullTensor& whole, const PartitionRule& rule,
                               ParallelRank tensor, const std::optional<Shape>& target = {}) {
  const auto part = cut_tensor(whole, rule, {.tensor = tensor}, target);
  return part ? part->tensor.values : std::vector<double>{-1.0};
}

std::string cut_error(const FullTensor& whole, const PartitionRule& rule, ParallelPlace place,
                      const std::optional<Shape>& target = {}) {
  const auto part = cut_tensor(whole, rule, place, target);
  return part ? "cut" : part.error().text;
}

using Values = std::vector<double>;

TEST(CutTensor, Follows_each_rule_of_the_specification) {
  const FullTensor matrix = counted({4, 2});
  EXPECT_EQ(cut_values(matrix, {}, {1, 2}, Shape{4, 2}), matrix.values);  // shapes agree
  EXPECT_EQ(cut_values(matrix, {}, {1, 2}, Shape{2, 2}), (Values{5, 6, 7, 8}));
  EXPECT_EQ(cut_values(matrix, {.axis = 1}, {1, 2}, Shape{4, 1}), (Values{2, 4, 6, 8}));
  EXPECT_EQ(cut_values(matrix, {.kind = PartitionKind::replicated}, {1, 2}), matrix.values);
  const PartitionRule fused = {.kind = PartitionKind::sliced, .sub_parameters = {2, 4}};
  EXPECT_EQ(cut_values(counted({6}), fused, {0, 2}), (Values{1, 3, 4}));
  EXPECT_EQ(cut_values(counted({6}), fused, {1, 2}), (Values{2, 5, 6}));
  const PartitionRule uneven = {.kind = PartitionKind::sliced, .partition_sizes = {1, 3}};
  EXPECT_EQ(cut_values(counted({4}), uneven, {1, 2}), (Values{2, 3, 4}));
  EXPECT_EQ(cut_values(counted({4}), uneven, {1, 4}), (Values{2}));
  const PartitionRule words = {.kind = PartitionKind::vocabulary};
  EXPECT_EQ(cut_values(counted({3, 1}), words, {1, 2}, Shape{2, 1}), (Values{3, 0}));
  const PartitionRule experts = {.kind = PartitionKind::sliced, .axis = 1, .experts = 4};
  const auto block = cut_tensor(matrix, experts, {{1, 2}, {1, 2}}, Shape{2, 1});
  ASSERT_TRUE(block);
  EXPECT_EQ(block->tensor.values, (Values{6, 8}));
}

TEST(CutTensor, Names_what_cannot_be_cut) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  };
  const ParallelPlace half = {.tensor = {0, 2}};
  const PartitionRule sliced = {.kind = PartitionKind::sliced};
  EXPECT_TRUE(has(cut_error(counted({3}), sliced, half), "3 along axis 0 do not divide by"));
  EXPECT_TRUE(has(cut_error(counted({4}), {.kind = PartitionKind::sliced, .axis = 1}, half),
                  "has no axis 1"));
  EXPECT_TRUE(has(cut_error(counted({6}), {}, half, Shape{2}), "nor 2 times as large"));
  EXPECT_TRUE(
      has(cut_error(counted({5}), {.kind = PartitionKind::sliced, .partition_sizes = {1, 3}}, half),
          "sizes [1, 3] do not add up to 5"));
  EXPECT_TRUE(
      has(cut_error(counted({4}), {.kind = PartitionKind::sliced, .sub_parameters = {1, 3}}, half),
          "1 along axis 0 do not divide"));
  EXPECT_TRUE(
      has(cut_error(counted({4}), {.kind = PartitionKind::unsupported, .note = "why"}, half),
          "not supported: why"));
  EXPECT_TRUE(has(cut_error(counted({9}), {.kind = PartitionKind::vocabulary}, half, Shape{4}),
                  "does not fit into 4 rows"));
  EXPECT_TRUE(has(cut_error(counted({3}), {.experts = 4}, {.expert = {0, 2}}),
                  "4 experts are recorded and 3 are there"));
  EXPECT_TRUE(has(cut_error(counted({3}), {.experts = 3}, {.expert = {0, 2}}), "3 experts"));
}

// A tensor and a rule by which `sizes` can share it.
PartitionRule any_rule(FullTensor& tensor, ParallelSizes sizes) {
  const auto share = [&] { return *rc::gen::inRange<std::int64_t>(1, 4); };
  const std::int64_t ranks = sizes.tensor;
  PartitionRule rule;
  const int kind = *rc::gen::inRange(0, 5);
  Shape widths = {share() * ranks};
  if (kind == 0) rule.kind = PartitionKind::replicated;
  if (kind > 0 && kind < 4) rule = {.kind = PartitionKind::sliced, .axis = *rc::gen::inRange(0, 2)};
  if (kind == 2) rule.sub_parameters = widths = {share() * ranks, share() * ranks, ranks};
  if (kind == 3) {
    rule.partition_sizes = Shape(static_cast<std::size_t>(ranks), 1);
    rule.partition_sizes.front() = share();
    widths = rule.partition_sizes;
  }
  if (kind == 4) {
    rule.kind = PartitionKind::vocabulary;
    widths = {*rc::gen::inRange<std::int64_t>(1, 9)};
  }
  Shape shape = {2, 3};
  if (kind != 0) shape[static_cast<std::size_t>(rule.axis)] = 0;
  for (const std::int64_t width : widths) {
    if (kind != 0) shape[static_cast<std::size_t>(rule.axis)] += width;
  }
  if (kind != 4 && sizes.expert > 1 && rule.axis == 1) {
    shape[0] = rule.experts = 2 * sizes.expert;
  }
  const std::string name = tensor.name;
  tensor = counted(shape);
  tensor.name = name;
  return rule;
}

// P87 through other degrees: 1 -> (tensor, expert) -> 1 -> the same degrees.
RC_GTEST_PROP(CheckpointTensorParallel, Any_degree_goes_to_parts_and_back, ()) {
  const ParallelSizes sizes = {*rc::gen::element(2, 3, 4), *rc::gen::element(1, 2)};
  TrainingState whole = small_state(1, 0.5);
  for (FullTensor& tensor : whole.parameters) {
    whole.partition_rules[tensor.name] = any_rule(tensor, sizes);
    for (FullTensor& state : whole.optimizer_state) {
      if (!state.name.starts_with(tensor.name + "/exp")) continue;
      state.sizes = tensor.sizes;
      state.values = tensor.values;
      for (double& value : state.values) value += 0.5;
    }
  }
  MemoryFileSystem files;
  RC_ASSERT(save_checkpoint(whole, files, "run").has_value());

  const auto load_parts = [&] {
    std::vector<TrainingState> parts;
    for (int rank = 0; rank < sizes.tensor * sizes.expert; ++rank) {
      LoadOptions options;
      options.tensor_parallel = {rank % sizes.tensor, sizes.tensor};
      options.expert_parallel = {rank / sizes.tensor, sizes.expert};
      auto part = load_checkpoint(files, "run", options);
      RC_ASSERT(part.has_value());
      parts.push_back(std::move(*part));
    }
    return parts;
  };
  const std::vector<TrainingState> parts = load_parts();
  for (const auto& saved : save_parts(parts, files, {.tag = "parts"}, sizes)) {
    RC_ASSERT(saved.has_value());
  }
  const std::vector<TrainingState> again = load_parts();
  RC_ASSERT(std::ranges::equal(again, parts, is_same_state));

  LoadOptions alone = kAlone;
  alone.targets = targets_of(whole);
  auto back = load_checkpoint(files, "run", alone);
  RC_ASSERT(back.has_value());
  RC_ASSERT(std::ranges::equal(back->parameters, whole.parameters, is_same_tensor));
  RC_ASSERT(std::ranges::equal(back->optimizer_state, whole.optimizer_state, is_same_tensor));
  RC_ASSERT(save_checkpoint(*back, files, "run", {.tag = "back"}).has_value());
  RC_ASSERT(std::ranges::equal(load_parts(), parts, is_same_state));
}

}  // namespace
}  // namespace zeroproof
