// The training loop on decoders: engines of all stages beside the unsharded truths.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "model/cpu_ops.h"
#include "props/report/decoder_report.h"
#include "props/train/decoder_memory.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof::train {
namespace {

DecoderCell short_cell(int stage, Precision precision = Precision::float32) {
  DecoderCell cell;
  cell.sizes = {.width = 64, .layers = 2, .heads = 1, .hidden = 96, .vocabulary = 40};
  cell.stage = stage;
  cell.precision = precision;
  cell.batch = 1;
  cell.length = 5;
  cell.steps = 2;
  return cell;
}

std::vector<DecoderRank> ranks_of(const DecoderCell& cell) {
  HostWorldOptions options;
  options.world_size = cell.world_size;
  options.device = Device::cpu();
  HostWorld world(options);
  return run_decoder(world, cell, {.collects_parameters = true});
}

DecoderReport checked(const DecoderCell& cell) {
  return *train_decoder(cell, {.checks_baseline = true});
}

TEST(DecoderTraining, Equals_the_unsharded_run_in_every_stage) {
  for (const int stage : {0, 1, 2, 3})
    for (const Precision precision : {Precision::float32, Precision::bf16}) {
      const DecoderReport report = checked(short_cell(stage, precision));
      ASSERT_TRUE(report.from_ranks) << decoder_text(report, Palette());
      EXPECT_TRUE(report.from_ranks->is_bitwise) << decoder_text(report, Palette());
      EXPECT_FALSE(report.is_bad()) << decoder_text(report, Palette());
    }
}

TEST(DecoderTraining, Has_a_configuration_for_m267_that_engines_take) {
  DecoderCell cell;
  cell.model = "m267";
  cell.sizes = nn::DecoderSizes::m267();
  for (const int stage : {0, 1, 2, 3}) {
    cell.stage = stage;
    const ZeroConfig config = config_of(cell);
    EXPECT_TRUE(validate(config)) << validate(config).error().text;
    EXPECT_GE(config.reduce_bucket_size * item_bytes(DType::bfloat16), 25'000'000);
    EXPECT_LE(config.reduce_bucket_size * item_bytes(DType::bfloat16), 50'000'000);
    EXPECT_TRUE(config.has_overlap_comm());
    EXPECT_FALSE(config.use_multi_rank_bucket_allreduce);
  }
}

// Gigabytes of docs/spec/performance.md 3.
TEST(DecoderTraining, Knows_the_states_of_m267_by_stage) {
  DecoderCell cell;
  cell.sizes = nn::DecoderSizes::m267();
  cell.precision = Precision::bf16;
  constexpr std::array<std::array<double, 2>, 4> kStates = {
      {{4.27, 4.27}, {2.67, 1.87}, {2.40, 1.47}, {2.14, 1.07}}};
  for (const int stage : {0, 1, 2, 3})
    for (const int ranks : {2, 4}) {
      cell.stage = stage;
      cell.world_size = ranks;
      const double expected = kStates.at(static_cast<std::size_t>(stage)).at(ranks == 2 ? 0 : 1);
      EXPECT_NEAR(static_cast<double>(memory_of(cell).states) / 1e9, expected, 0.005);
    }
}

TEST(DecoderTraining, Counts_the_staging_of_gpus_that_sum_by_copies) {
  DecoderCell cell;
  cell.sizes = nn::DecoderSizes::m267();
  cell.precision = Precision::bf16;
  EXPECT_EQ(memory_of(cell).staging, 0) << "the host sums where the values are";
  cell.gpus = Gpus();
  constexpr std::int64_t kStaging = 50'331'648;
  EXPECT_EQ(memory_of(cell).staging, kStaging);
  EXPECT_EQ(memory_of(cell).total() - memory_of(cell).states - memory_of(cell).activations,
            kStaging);
  cell.collectives = CudaCollectives::nccl;
  EXPECT_EQ(memory_of(cell).staging, 0);
  cell.collectives = CudaCollectives::copies;
  cell.world_size = 1;
  EXPECT_EQ(memory_of(cell).staging, 0);
  cell.world_size = 2;
  cell.sizes = nn::DecoderSizes::tiny();
  EXPECT_EQ(memory_of(cell).staging, 0) << "short slices are read where they are";
}

TEST(DecoderTraining, Tells_the_memory_of_a_gpu_beside_the_formula) {
  DecoderReport report;
  report.cell.sizes = nn::DecoderSizes::m267();
  report.cell.precision = Precision::bf16;
  report.cell.gpus = Gpus();
  const DecoderMemory formula = memory_of(report.cell);
  report.gpu_peak_bytes = formula.total();
  report.collectives = "copies";
  EXPECT_NE(decoder_text(report, Palette())
                .find("1.000 of the formula's " + std::to_string(formula.total())),
            std::string::npos)
      << decoder_text(report, Palette());
  const auto document = nlohmann::json::parse(decoder_json(report));
  EXPECT_EQ(document["formula_bytes"]["staging"], formula.staging);
  EXPECT_EQ(document["collectives"], "copies");
  EXPECT_NE(decoder_text(report, Palette()).find("\n  collectives: copies\n"), std::string::npos);
}

TEST(DecoderTraining, Equals_it_with_three_ranks_and_accumulated_forwards) {
  for (const int stage : {1, 2, 3}) {
    DecoderCell cell = short_cell(stage);
    cell.world_size = 3;
    cell.config = config_of(cell);
    cell.config->gradient_accumulation_steps = 2;
    const DecoderReport report = checked(cell);
    ASSERT_TRUE(report.from_ranks) << decoder_text(report, Palette());
    EXPECT_TRUE(report.from_ranks->is_bitwise) << decoder_text(report, Palette());
    EXPECT_FALSE(report.is_bad()) << decoder_text(report, Palette());
    EXPECT_EQ(report.losses.size(), 2U);
  }
}

TEST(DecoderTraining, Lowers_the_loss_of_a_batch_that_comes_again) {
  DecoderCell cell = short_cell(2);
  cell.steps = 6;
  const DecoderReport report = *train_decoder(cell, {});
  ASSERT_EQ(report.losses.size(), 6U);
  EXPECT_LT(report.losses[4], report.losses[0] - 0.05);
  EXPECT_LT(report.losses[5], report.losses[1] - 0.05);
}

// A rank whose data the truth does not have, a learning rate one part in a hundred off.
TEST(DecoderTraining, Differs_from_other_trainings) {
  const CpuOps ops;
  const DecoderCell cell = short_cell(2);
  const std::vector<DecoderRank> ranks = ranks_of(cell);
  DecoderCell other_rate = cell;
  other_rate.config = config_of(cell);
  other_rate.config->optimizer.adam.lr *= 1.01;
  const DecoderDistance rate = distance_of(ranks, run_decoder_truth(other_rate, 2, ops));
  EXPECT_FALSE(rate.is_bitwise);
  EXPECT_GT(rate.parameter, bound_of(cell.precision).parameter);
  EXPECT_NE(rate.tensor, "");
  DecoderCell alone = cell;
  alone.world_size = 1;
  const DecoderDistance lost = distance_of(ranks, run_decoder_truth(alone, 1, ops));
  EXPECT_GT(lost.parameter, bound_of(Precision::bf16).parameter);
  EXPECT_GT(lost.loss, bound_of(Precision::bf16).loss);
  DecoderReport report = report_of(other_rate, ranks);
  check_truth(ranks, ops, Arithmetic::other, report);
  EXPECT_EQ(report.status, CellStatus::different);
  EXPECT_TRUE(report.is_bad());
}

TEST(DecoderTraining, Accepts_other_roundings_only_where_the_arithmetic_is_another) {
  const CpuOps ops;
  const DecoderCell cell = short_cell(2);
  std::vector<DecoderRank> ranks = ranks_of(cell);
  ranks[0].parameters[0].values[0] += 1e-9;
  for (const Arithmetic arithmetic : {Arithmetic::same, Arithmetic::other}) {
    DecoderReport report = report_of(cell, ranks);
    check_truth(ranks, ops, arithmetic, report);
    EXPECT_EQ(report.is_bad(), arithmetic == Arithmetic::same) << decoder_text(report, Palette());
  }
}

TEST(DecoderTraining, Compares_what_ran_in_this_process) {
  const CpuOps ops;
  const DecoderCell cell = short_cell(1);
  std::vector<DecoderRank> ranks = ranks_of(cell);
  const std::vector<double> second = ranks[1].losses;
  ranks[0] = DecoderRank();
  const DecoderReport report = report_of(cell, ranks);
  EXPECT_EQ(report.losses, second);
  EXPECT_TRUE(distance_of(ranks, run_decoder_truth(cell, 2, ops)).is_bitwise);
}

TEST(DecoderTraining, Has_batches_that_do_not_depend_on_the_ranks) {
  DecoderCell cell;
  cell.length = 7;
  const TensorList all = batch_of(cell, 1, {0, 4});
  const std::vector<double> ids = all[0].values();
  const std::vector<double> part = batch_of(cell, 1, {1, 2})[0].values();
  EXPECT_TRUE(std::equal(part.begin(), part.end(), ids.begin() + 7));
  EXPECT_NE(ids, all[1].values());
  EXPECT_EQ(ids, batch_of(cell, 1 + kBatchTurns, {0, 4})[0].values());
  std::set<std::vector<double>> turns;
  for (std::int64_t turn = 0; turn < kBatchTurns; ++turn)
    for (const Tensor& half : batch_of(cell, turn, {0, 4})) turns.insert(half.values());
  EXPECT_EQ(turns.size(), 2U * kBatchTurns);
}

TEST(DecoderTraining, Draws_every_token_alike) {
  DecoderCell cell;
  cell.length = 1 << 14;
  std::vector<int> counts(512);
  for (const double id : batch_of(cell, 0, {0, 4})[0].values())
    ++counts.at(static_cast<std::size_t>(id));
  for (const int count : counts) EXPECT_NEAR(count, 128, 6 * 11.3);
}

TEST(DecoderTraining, Times_the_steps_behind_the_warm_up) {
  DecoderCell cell = short_cell(1);
  cell.steps = 3;
  const DecoderReport report = *train_decoder(cell, {.is_timed = true, .warmup_steps = 1});
  ASSERT_TRUE(report.times);
  EXPECT_EQ(report.times->steps, 2U);
  EXPECT_GT(report.times->least_ms, 0.0);
  EXPECT_LE(report.times->least_ms, report.times->median_ms);
  EXPECT_LE(report.times->median_ms, report.times->most_ms);
  EXPECT_FALSE(train_decoder(short_cell(1), {})->times);
}

TEST(DecoderTraining, Reports_a_configuration_that_no_engine_can_have) {
  DecoderCell cell = short_cell(0);
  cell.config = config_of(cell);
  cell.config->offload_optimizer = OffloadDevice::cpu;
  const DecoderReport report = checked(cell);
  EXPECT_EQ(report.status, CellStatus::failed);
  EXPECT_NE(report.error.find("rank 0: "), std::string::npos);
  EXPECT_TRUE(report.losses.empty());
}

TEST(DecoderTraining, Writes_what_it_found_as_json) {
  const auto document = nlohmann::json::parse(decoder_json(checked(short_cell(3))));
  EXPECT_EQ(document["schema"], "zeroproof.train_model/1");
  EXPECT_EQ(document["status"], "equal");
  EXPECT_EQ(document["from_ranks"]["bitwise"], true);
  EXPECT_EQ(document["losses"].size(), 2U);
}

}  // namespace
}  // namespace zeroproof::train
