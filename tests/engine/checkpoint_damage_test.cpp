#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/tensor_parallel.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/training_states.h"

namespace zeroproof {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const TrainingState kState = small_state(7, 0.5);
const LoadOptions kDamagedLoad = {.tensor_parallel = ParallelRank{}};

MemoryFileSystem saved_machine() {
  MemoryFileSystem files;
  EXPECT_TRUE(save_checkpoint(kState, files, "run"));
  return files;
}

// The checkpoint does not load, and the error begins with the file's name.
::testing::AssertionResult is_noticed(MemoryFileSystem& files, const std::string& path) {
  const auto loaded = load_checkpoint(files, "run", kDamagedLoad);
  if (loaded) return ::testing::AssertionFailure() << path << ": loaded all the same";
  if (loaded.error().text.starts_with(path + ": ") &&
      loaded.error().code == ErrorCode::unreadable) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << path << ": " << loaded.error().text;
}

std::string with_flipped_bit(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  return bytes;
}

TEST(CheckpointDamage, A_flipped_bit_in_any_byte_of_any_file_names_the_file) {
  MemoryFileSystem files = saved_machine();
  std::size_t flips = 0;
  for (const std::string& path : files.all_files()) {
    const std::string right = files.bytes_of(path);
    for (std::size_t byte = 0; byte < right.size(); ++byte, ++flips) {
      files.set_bytes(path, with_flipped_bit(right, 8 * byte + byte % 8));
      ASSERT_TRUE(is_noticed(files, path)) << "byte " << byte;
    }
    files.set_bytes(path, right);
  }
  EXPECT_TRUE(load_checkpoint(files, "run", kDamagedLoad));
  EXPECT_GT(flips, 2000U);
}

RC_GTEST_PROP(CheckpointDamage, Any_bit_of_any_state_is_guarded, ()) {
  MemoryFileSystem files;
  const TrainingState state = any_state(DType::float32);
  RC_ASSERT(save_checkpoint(state, files, "run").has_value());
  const auto path = *rc::gen::elementOf(files.all_files());
  const std::string right = files.bytes_of(path);
  files.set_bytes(path,
                  with_flipped_bit(right, *rc::gen::inRange<std::size_t>(0, 8 * right.size())));
  RC_ASSERT(is_noticed(files, path));
}

TEST(CheckpointDamage, A_missing_shorter_or_longer_file_is_named) {
  MemoryFileSystem files = saved_machine();
  ASSERT_EQ(files.all_files().size(), 8U + 3U);
  for (const std::string& path : files.all_files()) {
    const std::string right = files.bytes_of(path);
    for (const std::string& wrong :
         {std::string(), right.substr(0, right.size() / 2), right.substr(0, right.size() - 1),
          right + '\0', right + right}) {
      files.set_bytes(path, wrong);
      EXPECT_TRUE(is_noticed(files, path)) << wrong.size() << " of " << right.size();
    }
    files.set_bytes(path, right);
    MemoryFileSystem without = files.after_crash(CrashLoss::nothing);
    ASSERT_TRUE(without.remove_all(path));
    EXPECT_TRUE(is_noticed(without, path));
  }
}

TEST(CheckpointDamage, Two_files_that_change_places_are_noticed) {
  MemoryFileSystem files = saved_machine();
  const std::string a = "run/global_step7/zero/fc.weight/exp_avg.tensor";
  const std::string b = "run/global_step7/zero/fc.weight/exp_avg_sq.tensor";
  const std::string bytes = files.bytes_of(a);
  files.set_bytes(a, files.bytes_of(b));
  EXPECT_TRUE(is_noticed(files, a));
  files.set_bytes(b, bytes);
  EXPECT_TRUE(is_noticed(files, a));
}

// Changes the first line of a sealed file and seals it again.
void rewrite(MemoryFileSystem& files, const std::string& path, const std::string& from,
             const std::string& to) {
  std::string text = files.bytes_of(path);
  std::string line = text.substr(0, text.find('\n'));
  const std::size_t at = line.find(from);
  ASSERT_NE(at, line.npos) << line;
  files.set_bytes(path, sealed(line.replace(at, from.size(), to)));
}

TEST(CheckpointDamage, Another_version_is_told_from_damage) {
  MemoryFileSystem files = saved_machine();
  rewrite(files, "run/global_step7/manifest.json", "zeroproof.checkpoint/1",
          "zeroproof.checkpoint/2");
  EXPECT_EQ(load_checkpoint(files, "run", kDamagedLoad).error().text,
            "run/global_step7/manifest.json: has schema 'zeroproof.checkpoint/2', and this version "
            "reads 'zeroproof.checkpoint/1'; load it with the version that saved it");
}

TEST(CheckpointDamage, A_manifest_that_makes_no_sense_is_an_error_even_with_the_right_checksum) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"tensor_parallel_size\":1", "\"tensor_parallel_size\":-1"},
           {"\"tensor_parallel_size\":1", "\"tensor_parallel_size\":2"},
           {"\"tensor_parallel_size\":1", "\"tensor_parallel_size\":\"1\""},
           {"\"expert_parallel_size\":1", "\"expert_parallel_size\":99999999"},
           {"\"parts\":[", "\"parts\":[7,"},
           {"\"micro_steps\":28", "\"micro_steps\":-1"},
           {"\"micro_steps\":28", "\"micro_steps\":9223372036854775807"},
           {"\"micro_steps\":28", "\"micro_steps\":1e300"},
           {"\"micro_steps\":28", "\"micro_steps\":18446744073709551615"},
           {"\"counters\":", "\"contours\":"},
           {"\"last_batch_iteration\":7", "\"last_batch_iteration\":-2"},
           {"\"last_batch_iteration\":7", "\"last_batch_iteration\":\"7\""},
           {"\"type\":\"OneCycle\"", "\"types\":\"OneCycle\""},
           {"\"fc.weight\"", "\"%2\""}}) {
    MemoryFileSystem files = saved_machine();
    const std::string path = "run/global_step7/manifest.json";
    rewrite(files, path, from, to);
    EXPECT_TRUE(is_noticed(files, path)) << to;
  }
}

TEST(CheckpointDamage, The_error_says_what_else_is_there) {
  MemoryFileSystem files = saved_machine();
  ASSERT_TRUE(save_checkpoint(kState, files, "run", {.tag = "best"}));
  EXPECT_EQ(load_checkpoint(files, "run", {.tag = "worst"}).error().text,
            "run: has no checkpoint 'worst'; load one of these tags: best, global_step7");
  ASSERT_TRUE(files.remove_all("run/latest"));
  EXPECT_EQ(load_checkpoint(files, "run", kDamagedLoad).error().text,
            "run/latest: cannot be read: No such file or directory; load one of these tags: best, "
            "global_step7");
  EXPECT_THAT(load_checkpoint(files, "elsewhere", kDamagedLoad).error().text,
              AllOf(StartsWith("elsewhere/latest: "), HasSubstr("no checkpoint is there")));
}

struct Misfit {
  std::string name;
  void (*change)(TrainingState& engine);  // what loads, from what was saved
  std::string text;
};

class CheckpointMisfit : public ::testing::TestWithParam<Misfit> {};

TEST_P(CheckpointMisfit, Is_an_error_that_says_what_does_not_fit) {
  MemoryFileSystem files = saved_machine();
  TrainingState engine = kState;
  GetParam().change(engine);
  LoadOptions options = kDamagedLoad;
  options.targets = targets_of(engine);
  const auto loaded = load_checkpoint(files, "run", options);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::usage);
  EXPECT_THAT(loaded.error().text, AllOf(StartsWith("run/global_step7"), HasSubstr(GetParam().text),
                                         HasSubstr("; load ")));
}

INSTANTIATE_TEST_SUITE_P(
    Each, CheckpointMisfit,
    ::testing::Values(
        Misfit{"MissingParameter",
               [](TrainingState& s) {
                 s.parameters.push_back({"head", {1}, {0.0}});
               },
               ": has no parameter 'head', which this engine needs"},
        Misfit{"UnknownParameter", [](TrainingState& s) { s.parameters.pop_back(); },
               ": has the parameter 'fc.bias', which this engine does not know"},
        Misfit{"MissingState",
               [](TrainingState& s) {
                 s.optimizer_state.push_back({"fc.bias/max", {2}, {0, 0}});
               },
               ": has no state 'fc.bias/max'"},
        Misfit{"UnknownState",
               [](TrainingState& s) { s.optimizer_state.erase(s.optimizer_state.begin()); },
               ": has the state 'fc.weight/exp_avg'"},
        Misfit{"OtherShape",
               [](TrainingState& s) {
                 s.parameters[0].sizes = {3, 2};
               },
               "/zero/fc.weight: 'fc.weight' does not fit: shape [2, 3] (whole: [2, 3]) where this "
               "engine has [3, 2]"},
        Misfit{"OtherSize",
               [](TrainingState& s) {
                 s.parameters[0].sizes = {4, 2};
               },
               "shape [2, 3] is neither this engine's [4, 2] nor 1 times as large"},
        Misfit{"OtherStateShape", [](TrainingState& s) { s.optimizer_state[0].sizes = {6}; },
               "'fc.weight/exp_avg' does not fit"}),
    [](const auto& each) { return each.param.name; });

TEST(CheckpointSteps, Unequal_steps_in_a_group_are_rejected) {
  MemoryFileSystem files;
  TrainingState state = kState;
  state.optimizer_state.back().values = {8.0};
  ASSERT_TRUE(save_checkpoint(state, files, "run"));
  EXPECT_THAT(load_checkpoint(files, "run", kDamagedLoad).error().text,
              HasSubstr("run/global_step7: group 0 has unequal steps: 7 of 'fc.weight' and 8 of "
                        "'fc.bias'"));
  LoadOptions options = kDamagedLoad;
  options.groups = {{"fc.bias", "fc.weight"}};
  EXPECT_FALSE(load_checkpoint(files, "run", options));
}

TEST(CheckpointSteps, Groups_may_differ_in_their_steps) {
  MemoryFileSystem files;
  TrainingState state = kState;
  state.optimizer_state.back().values = {8.0};
  state.groups = {{.parameters = {"fc.weight"}}, {.parameters = {"fc.bias"}}};
  ASSERT_TRUE(save_checkpoint(state, files, "run"));
  EXPECT_TRUE(is_same_state(load_checkpoint(files, "run", kDamagedLoad).value(), state));
  LoadOptions options = kDamagedLoad;
  options.groups = {{"fc.bias", "fc.weight"}};
  EXPECT_THAT(load_checkpoint(files, "run", options).error().text,
              HasSubstr("has 2 parameter groups where this engine has 1"));
}

struct Unsavable {
  std::string name;
  void (*change)(TrainingState& state, SaveOptions& options);
  std::string text;
};

class CheckpointUnsavable : public ::testing::TestWithParam<Unsavable> {};

TEST_P(CheckpointUnsavable, Is_refused_before_anything_is_written) {
  MemoryFileSystem files;
  TrainingState state = kState;
  SaveOptions options;
  GetParam().change(state, options);
  const auto saved = save_checkpoint(state, files, "run", options);
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().text, HasSubstr(GetParam().text));
  EXPECT_EQ(files.operations(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Each, CheckpointUnsavable,
    ::testing::Values(
        Unsavable{"TwiceTheName",
                  [](TrainingState& s, SaveOptions&) { s.parameters.push_back(s.parameters[0]); },
                  "'fc.weight' cannot be saved: its name is there twice"},
        Unsavable{"ValuesMissing",
                  [](TrainingState& s, SaveOptions&) { s.parameters[0].values.pop_back(); },
                  "'fc.weight' cannot be saved: 5 values do not fill the shape [2, 3]"},
        Unsavable{"StateOfNothing", [](TrainingState& s, SaveOptions&) { s.parameters.pop_back(); },
                  "'fc.bias/exp_avg' cannot be saved: it is no state of a parameter"},
        Unsavable{"NoName", [](TrainingState& s, SaveOptions&) { s.parameters[0].name.clear(); },
                  "it has no name"},
        Unsavable{"NotFinite",
                  [](TrainingState& s, SaveOptions&) { s.loss_scaler.scale = 1.0 / 0.0; },
                  "not finite"},
        Unsavable{"BadTag", [](TrainingState&, SaveOptions& o) { o.tag = "../x"; },
                  "'../x' cannot be saved: a tag has letters"},
        Unsavable{"TagLatest", [](TrainingState&, SaveOptions& o) { o.tag = "latest"; },
                  "a tag has letters"},
        Unsavable{"NoSuchRank",
                  [](TrainingState&, SaveOptions& o) {
                    o.place.tensor = {2, 2};
                  },
                  "there is no rank 2 of 2"},
        Unsavable{"NoBarrier",
                  [](TrainingState&, SaveOptions& o) {
                    o.place.tensor = {0, 2};
                  },
                  "need a barrier"},
        Unsavable{"NoRule",
                  [](TrainingState&, SaveOptions& o) {
                    o.place.tensor = {0, 2};
                    o.barrier = [] {};
                  },
                  "no partition rule says what it is a part of"}),
    [](const auto& each) { return each.param.name; });

// Widths whose sum is not a number of 64 bits, or comes round to the right one.
TEST(CheckpointDamage, A_partition_rule_of_huge_numbers_is_refused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const PartitionRule rules[] = {
      {.kind = PartitionKind::sliced, .sub_parameters = {kMost, kMost, 6}},
      {.kind = PartitionKind::sliced, .partition_sizes = {kMost, kMost, 6}},
      {.kind = PartitionKind::sliced, .partition_sizes = Shape(70'000, 0)},
      {.kind = PartitionKind::vocabulary, .vocabulary_rows = kMost},
      {.kind = PartitionKind::sliced, .axis = kMost},
      {.kind = PartitionKind::sliced, .experts = kMost},
  };
  for (const PartitionRule& rule : rules) {
    EXPECT_NE("", problem_of(rule));
    TrainingState state = kState;
    state.partition_rules[state.parameters.front().name] = rule;
    MemoryFileSystem files;
    EXPECT_FALSE(save_checkpoint(state, files, "run"));
    const Manifest manifest{.tag = "a", .parts = {{}}, .rules = {{"fc", rule}}};
    EXPECT_FALSE(parse_manifest(manifest_text(manifest), "run/manifest.json"));
  }
}

}  // namespace
}  // namespace zeroproof
