#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/pending_save.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/training_states.h"

namespace zeroproof {
namespace {

const TrainingState kBeforeCrash = small_state(1, 0.25);
const TrainingState kAfterCrash = small_state(2, 0.75);
const LoadOptions kCrashLoad = {.tensor_parallel = ParallelRank{}};

// What survives of a machine on which the previous checkpoint was saved and then the power failed:
// all that save promised.
MemoryFileSystem machine_with_old() {
  MemoryFileSystem files;
  EXPECT_TRUE(save_checkpoint(kBeforeCrash, files, "run"));
  return files.after_crash(CrashLoss::everything);
}

enum class CrashOutcome { neither, old_one, new_one };

CrashOutcome outcome_of(MemoryFileSystem& files, const LoadOptions& options = kCrashLoad) {
  const auto loaded = load_checkpoint(files, "run", options);
  if (!loaded) return CrashOutcome::neither;
  if (is_same_state(*loaded, kBeforeCrash)) return CrashOutcome::old_one;
  return is_same_state(*loaded, kAfterCrash) ? CrashOutcome::new_one : CrashOutcome::neither;
}

struct Tally {
  int old_ones = 0;
  int new_ones = 0;
  int neither = 0;

  void add(CrashOutcome outcome) {
    old_ones += outcome == CrashOutcome::old_one ? 1 : 0;
    new_ones += outcome == CrashOutcome::new_one ? 1 : 0;
    neither += outcome == CrashOutcome::neither ? 1 : 0;
  }
};

using Save = Result<void> (*)(MemoryFileSystem& files);

Result<void> save_under_own_tag(MemoryFileSystem& files) {
  return save_checkpoint(kAfterCrash, files, "run");
}

Result<void> save_under_old_tag(MemoryFileSystem& files) {
  return save_checkpoint(kAfterCrash, files, "run", {.tag = "global_step1"});
}

Result<void> save_with_short_writes(MemoryFileSystem& files) {
  files.set_write_max(50);
  return save_checkpoint(kAfterCrash, files, "run");
}

// The old state as two tensor-parallel ranks hold it, and the new one likewise.
std::vector<TrainingState> halves(const TrainingState& whole) {
  std::vector<TrainingState> parts(2, whole);
  for (int rank = 0; rank < 2; ++rank) {
    TrainingState& part = parts[static_cast<std::size_t>(rank)];
    part.partition_rules["fc.weight"] = {.kind = PartitionKind::sliced, .axis = 0};
    part.partition_rules["fc.bias"] = {.kind = PartitionKind::replicated};
    const auto cut = [&](FullTensor& tensor) {
      if (!tensor.name.starts_with("fc.weight") || tensor.sizes.empty()) return;
      tensor.sizes = {1, 3};
      const auto begin = tensor.values.begin() + 3 * rank;
      tensor.values = std::vector<double>(begin, begin + 3);
    };
    for (FullTensor& tensor : part.parameters) cut(tensor);
    for (FullTensor& tensor : part.optimizer_state) cut(tensor);
  }
  return parts;
}

Result<void> save_in_halves(MemoryFileSystem& files) {
  auto results = save_parts(halves(kAfterCrash), files, {}, {.tensor = 2});
  return results[0] ? results[1] : results[0];
}

Result<void> save_beside_training(MemoryFileSystem& files) {
  const auto save = begin_checkpoint(kAfterCrash, files, "run", {});
  if (!save->begun()) return save->begun();
  save->start();
  return save->finish({});
}

class CrashedSave : public ::testing::TestWithParam<Save> {
 protected:
  std::int64_t operations() const {
    MemoryFileSystem files = machine_with_old();
    EXPECT_TRUE(GetParam()(files));
    return files.operations();
  }
};

// As the old one, but for the rules that only parts have.
CrashOutcome outcome_without_rules(MemoryFileSystem& files) {
  const auto loaded = load_checkpoint(files, "run", kCrashLoad);
  if (!loaded) return CrashOutcome::neither;
  TrainingState state = *loaded;
  state.partition_rules.clear();
  if (is_same_state(state, kBeforeCrash)) return CrashOutcome::old_one;
  return is_same_state(state, kAfterCrash) ? CrashOutcome::new_one : CrashOutcome::neither;
}

TEST_P(CrashedSave, Leaves_the_previous_or_the_new_checkpoint_whatever_was_lost) {
  const std::int64_t count = operations();
  ASSERT_GT(count, 30);
  Tally tally;
  for (std::int64_t at = 0; at <= count; ++at) {
    MemoryFileSystem files = machine_with_old();
    files.set_fault(FileFaultKind::crash, at);
    const bool is_saved = GetParam()(files).has_value();
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const auto loss = seed == 0   ? CrashLoss::everything
                        : seed == 1 ? CrashLoss::nothing
                                    : CrashLoss::at_random;
      MemoryFileSystem restarted = files.after_crash(loss, seed);
      const CrashOutcome outcome = outcome_without_rules(restarted);
      ASSERT_NE(outcome, CrashOutcome::neither) << "operation " << at << ", seed " << seed;
      ASSERT_TRUE(!is_saved || outcome == CrashOutcome::new_one) << "operation " << at;
      tally.add(outcome);
      // And the next save works on what is left.
      ASSERT_TRUE(GetParam()(restarted)) << "operation " << at << ", seed " << seed;
      ASSERT_EQ(outcome_without_rules(restarted), CrashOutcome::new_one);
    }
  }
  EXPECT_GT(tally.old_ones, count);
  EXPECT_GT(tally.new_ones, 12);
}

TEST_P(CrashedSave, Reports_an_error_of_any_operation_and_leaves_a_whole_checkpoint) {
  const std::int64_t count = operations();
  Tally tally;
  for (const auto kind : {FileFaultKind::io_error, FileFaultKind::no_space}) {
    for (std::int64_t at = 0; at < count; ++at) {
      MemoryFileSystem files = machine_with_old();
      files.set_fault(kind, at);
      const Result<void> saved = GetParam()(files);
      files.set_fault(FileFaultKind::none, 0);
      const CrashOutcome outcome = outcome_without_rules(files);
      ASSERT_NE(outcome, CrashOutcome::neither) << "operation " << at;
      ASSERT_TRUE(!saved || outcome == CrashOutcome::new_one) << "operation " << at;
      ASSERT_TRUE(saved || saved.error().text.starts_with("run")) << saved.error().text;
      MemoryFileSystem restarted = files.after_crash(CrashLoss::everything);
      ASSERT_NE(outcome_without_rules(restarted), CrashOutcome::neither) << "operation " << at;
      ASSERT_TRUE(GetParam()(files)) << "operation " << at;
      ASSERT_EQ(outcome_without_rules(files), CrashOutcome::new_one);
      tally.add(outcome);
    }
  }
  EXPECT_GT(tally.old_ones, count);
}

std::string name_of_save(const ::testing::TestParamInfo<Save>& info) {
  constexpr std::array kNames = {"NewTag", "SameTag", "ShortWrites", "TwoTensorParallelRanks",
                                 "BesideTraining"};
  return kNames.at(info.index);
}

INSTANTIATE_TEST_SUITE_P(Each, CrashedSave,
                         ::testing::Values(save_under_own_tag, save_under_old_tag,
                                           save_with_short_writes, save_in_halves,
                                           save_beside_training),
                         name_of_save);

TEST(CheckpointCrash, Leaves_nothing_or_the_first_checkpoint_when_there_was_none) {
  MemoryFileSystem counted;
  ASSERT_TRUE(save_checkpoint(kAfterCrash, counted, "deep/run"));
  Tally tally;
  for (std::int64_t at = 0; at <= counted.operations(); ++at) {
    MemoryFileSystem files;
    files.set_fault(FileFaultKind::crash, at);
    const bool is_saved = save_checkpoint(kAfterCrash, files, "deep/run").has_value();
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      MemoryFileSystem restarted =
          files.after_crash(seed == 0 ? CrashLoss::everything : CrashLoss::at_random, seed);
      const auto loaded = load_checkpoint(restarted, "deep/run", kCrashLoad);
      ASSERT_TRUE(!loaded || is_same_state(*loaded, kAfterCrash)) << "operation " << at;
      ASSERT_TRUE(!is_saved || loaded) << "operation " << at;
      tally.add(loaded ? CrashOutcome::new_one : CrashOutcome::neither);
    }
  }
  EXPECT_GT(tally.neither, 0);
  EXPECT_GT(tally.new_ones, 0);
}

TEST(CheckpointCrash, Frees_the_room_of_a_save_that_did_not_fit) {
  MemoryFileSystem files = machine_with_old();
  const auto before = files.all_files();
  files.set_fault(FileFaultKind::no_space, 12);
  const auto saved = save_checkpoint(kAfterCrash, files, "run");
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, ErrorCode::usage);
  EXPECT_THAT(saved.error().text,
              ::testing::AllOf(::testing::StartsWith("run/.saving/zero/fc."),
                               ::testing::HasSubstr("No space left on device; make room")));
  EXPECT_EQ(files.all_files(), before);
}

// Until `latest` names the new one, whatever operation fails.
TEST_P(CrashedSave, Leaves_the_folder_as_it_was_after_an_error_before_the_last_rename) {
  const std::int64_t count = operations();
  int unchanged = 0;
  for (std::int64_t at = 0; at < count; ++at) {
    MemoryFileSystem files = machine_with_old();
    const auto before = files.all_files();
    files.set_fault(FileFaultKind::no_space, at);
    const bool is_saved = GetParam()(files).has_value();
    files.set_fault(FileFaultKind::none, 0);
    if (is_saved || outcome_without_rules(files) == CrashOutcome::new_one) continue;
    ++unchanged;
    ASSERT_EQ(files.all_files(), before) << "operation " << at;
  }
  EXPECT_GT(unchanged, count / 2);
}

TEST(CheckpointCrash, Saving_a_tag_again_replaces_it_in_the_end) {
  MemoryFileSystem files = machine_with_old();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(save_under_old_tag(files));
    EXPECT_EQ(files.list("run").value(),
              (std::vector<std::string>{"global_step1~" + std::to_string(round + 2), "latest"}));
    EXPECT_EQ(outcome_of(files), CrashOutcome::new_one);
    EXPECT_EQ(outcome_of(files, {.tag = "global_step1"}), CrashOutcome::new_one);
  }
}

TEST(CheckpointCrash, Earlier_tags_stay_and_load) {
  MemoryFileSystem files = machine_with_old();
  ASSERT_TRUE(save_under_own_tag(files));
  EXPECT_EQ(outcome_of(files), CrashOutcome::new_one);
  EXPECT_EQ(outcome_of(files, {.tag = "global_step1"}), CrashOutcome::old_one);
}

// Many saves, each of which may crash anywhere, lose anything unsynced and be repeated.
RC_GTEST_PROP(CheckpointCrash, A_row_of_crashes_never_loses_the_last_complete_save, ()) {
  MemoryFileSystem files = machine_with_old();
  TrainingState durable = kBeforeCrash;
  const auto rounds = *rc::gen::inRange(1, 7);
  for (int round = 0; round < rounds; ++round) {
    const TrainingState attempt = small_state(round + 2, 0.5);
    const auto tag = *rc::gen::element<std::string>("", "a", "global_step1");
    files.set_fault(FileFaultKind::crash, *rc::gen::inRange<std::int64_t>(0, 120));
    const bool is_saved = save_checkpoint(attempt, files, "run", {.tag = tag}).has_value();
    files = files.after_crash(CrashLoss::at_random, *rc::gen::arbitrary<std::uint64_t>());
    const auto loaded = load_checkpoint(files, "run", kCrashLoad);
    RC_ASSERT(loaded.has_value());
    const bool is_new = is_same_state(*loaded, attempt);
    RC_ASSERT(is_new || (!is_saved && is_same_state(*loaded, durable)));
    durable = *loaded;
  }
}

}  // namespace
}  // namespace zeroproof
