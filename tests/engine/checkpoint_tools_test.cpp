// Checkpoints that are looked at, verified and converted without an engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/convert_checkpoint.h"
#include "engine/checkpoint/shard_load.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/checkpoint/verify_checkpoint.h"
#include "engine/files/posix_file_system.h"
#include "engine/runtime/host/shared_files.h"
#include "model/cpu_ops.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/support/small_models.h"
#include "tests/engine/training_states.h"
#include "tests/scratch_path.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// One engine's state, saved by two ranks in both layouts, and what its parameters were.
struct BothLayouts {
  MemoryFileSystem files;
  std::vector<FullTensor> parameters;
};

EngineCheckpointOptions in_layout(FileSystem& files, CheckpointLayout layout) {
  return {.files = &files, .layout = layout};
}

void save_both_layouts(BothLayouts& saved, OptimizerType optimizer) {
  SharedFiles shared(saved.files);
  ZeroConfig config{.stage = 3};
  config.bf16 = {.enabled = true, .check_grad_overflow = false};
  config.optimizer.type = optimizer;
  config.optimizer.sgd.momentum = 0.9;
  HostWorld({.world_size = 2}).run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    auto engine = Engine::initialize(ag, model, config, runtime).value();
    engine->backward(engine->forward(ops.cast(filled({2, 4}, 0.1), DType::bfloat16)));
    engine->step();
    for (const auto layout : {CheckpointLayout::universal, CheckpointLayout::shards}) {
      const std::string folder = layout == CheckpointLayout::shards ? "shards" : "whole";
      const auto done = engine->save_checkpoint(folder, in_layout(shared, layout));
      EXPECT_TRUE(done) << done.error().text;
    }
    const auto parameters = engine->full_parameters();
    if (runtime.rank() == 0) saved.parameters = parameters;
  });
}

// Of all files below a folder, by what follows it.
std::map<std::string, std::string> files_below(const MemoryFileSystem& files,
                                               const std::string& folder, std::string_view ending) {
  std::map<std::string, std::string> found;
  for (const std::string& path : files.all_files())
    if (path.starts_with(folder + "/") && path.ends_with(ending))
      found[path.substr(folder.size())] = files.bytes_of(path);
  return found;
}

std::string convert(RangedFileSystem& files, const std::string& from, const std::string& to,
                    int data_ranks) {
  const auto made = convert_checkpoint(files, from, to, {.data_ranks = data_ranks});
  return made ? *made : "error: " + made.error().text;
}

std::vector<FileProblem> problems_in(RangedFileSystem& files, const std::string& folder) {
  const auto verified = verify_checkpoint(files, folder, {}, {});
  EXPECT_TRUE(verified) << verified.error().text;
  return verified ? verified->problems : std::vector<FileProblem>();
}

TEST(CheckpointVerify, Names_every_file_that_is_not_as_it_was_saved) {
  BothLayouts saved;
  save_both_layouts(saved, OptimizerType::adam);
  for (const std::string folder : {"whole", "shards"}) {
    EXPECT_TRUE(problems_in(saved.files, folder).empty());
    int damaged = 0;
    for (const auto& [below, right] : files_below(saved.files, folder, "")) {
      const std::string path = folder + below;
      SCOPED_TRACE(path);
      std::string flipped = right;
      flipped[right.size() / 2] = static_cast<char>(flipped[right.size() / 2] ^ 4);
      for (const std::string& wrong : {flipped, right.substr(0, right.size() / 2), right + "x"}) {
        saved.files.set_bytes(path, wrong);
        const auto problems = problems_in(saved.files, folder);
        ASSERT_EQ(1U, problems.size());
        EXPECT_EQ(path, problems[0].path);
        EXPECT_NE("missing", problems[0].kind);
      }
      saved.files.set_bytes(path, right);
      ++damaged;
    }
    EXPECT_LT(10, damaged);
  }
}

TEST(CheckpointVerify, Tells_all_problems_and_their_kinds) {
  BothLayouts saved;
  save_both_layouts(saved, OptimizerType::adam);
  const auto tensors = files_below(saved.files, "whole", ".tensor");
  std::vector<std::string> paths;
  for (const auto& [below, bytes] : tensors) paths.push_back("whole" + below);
  ASSERT_LE(3U, paths.size());
  ASSERT_TRUE(saved.files.remove_all(paths[0]));
  saved.files.set_bytes(paths[1], saved.files.bytes_of(paths[1]) + "12");
  saved.files.set_bytes(paths[2], std::string(saved.files.bytes_of(paths[2]).size(), '?'));
  auto problems = problems_in(saved.files, "whole");
  ASSERT_EQ(3U, problems.size());
  std::ranges::sort(problems, {}, &FileProblem::path);
  EXPECT_EQ("missing", problems[0].kind);
  EXPECT_EQ("size", problems[1].kind);
  EXPECT_EQ("checksum", problems[2].kind);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(paths[static_cast<std::size_t>(i)], problems[i].path);
}

TEST(CheckpointVerify, Looks_for_blocks_that_make_up_a_whole) {
  BothLayouts saved;
  save_both_layouts(saved, OptimizerType::adam);
  // A rank's list without its first block, and a manifest that agrees with it.
  const std::string folder = "shards/global_step1/";
  const std::string part_path = folder + "shards.tp0.dp0.json";
  const std::string manifest_path = folder + "manifest.json";
  auto part = parse_shard_part(saved.files.bytes_of(part_path), part_path).value();
  part.blocks.pop_back();
  saved.files.set_bytes(part_path, shard_part_text(part));
  auto manifest = parse_manifest(saved.files.bytes_of(manifest_path), manifest_path).value();
  manifest.parts[0] = record_of(saved.files.bytes_of(part_path));
  saved.files.set_bytes(manifest_path, manifest_text(manifest));
  const auto problems = problems_in(saved.files, "shards");
  ASSERT_EQ(1U, problems.size());
  EXPECT_EQ("content", problems[0].kind);
  EXPECT_THAT(problems[0].text, HasSubstr("are not the whole of shape"));
}

TEST(CheckpointVerify, Of_no_checkpoint_is_an_error) {
  MemoryFileSystem files;
  const auto verified = verify_checkpoint(files, "nowhere", {}, {});
  ASSERT_FALSE(verified);
  EXPECT_EQ(ErrorCode::unreadable, verified.error().code);
  EXPECT_THAT(verified.error().text, StartsWith("nowhere/latest: cannot be read"));
}

TEST(CheckpointConvert, Makes_of_shards_what_the_engine_saves_whole) {
  for (const OptimizerType optimizer : {OptimizerType::adam, OptimizerType::sgd}) {
    BothLayouts saved;
    save_both_layouts(saved, optimizer);
    EXPECT_EQ("made/global_step1", convert(saved.files, "shards", "made", 0));
    EXPECT_TRUE(problems_in(saved.files, "made").empty());
    EXPECT_EQ(files_below(saved.files, "whole", ".tensor"),
              files_below(saved.files, "made", ".tensor"));
    const LoadOptions options{.tensor_parallel = ParallelRank{}};
    const auto whole = load_checkpoint(saved.files, "whole", options);
    auto made = load_checkpoint(saved.files, "made", options);
    ASSERT_TRUE(whole && made);
    EXPECT_EQ(whole->counters, made->counters);
    EXPECT_EQ(whole->groups, made->groups);
    EXPECT_TRUE(std::ranges::equal(whole->parameters, made->parameters, is_same_tensor));
  }
}

TEST(CheckpointConvert, Makes_shards_that_engines_load) {
  BothLayouts saved;
  save_both_layouts(saved, OptimizerType::adam);
  for (const int ranks : {1, 3, 64}) {
    const std::string made = "made" + std::to_string(ranks);
    EXPECT_EQ(made + "/global_step1", convert(saved.files, "whole", made, ranks));
    SharedFiles shared(saved.files);
    HostWorld({.world_size = 2}).run([&](Runtime& runtime) {
      const CpuOps ops;
      Autograd ag(ops);
      MlpModel model;
      ZeroConfig config{.stage = 1};
      config.bf16 = {.enabled = true, .check_grad_overflow = false};
      auto engine = Engine::initialize(ag, model, config, runtime).value();
      const auto done = engine->load_checkpoint(made, in_layout(shared, CheckpointLayout::shards));
      EXPECT_TRUE(done) << done.error().text;
      EXPECT_TRUE(std::ranges::equal(saved.parameters, engine->full_parameters(),
                                     [](auto& a, auto& b) { return is_same_tensor(a, b); }));
    });
    // And back, from another number of ranks.
    EXPECT_EQ(made + "b/global_step1", convert(saved.files, made, made + "b", 5));
    EXPECT_EQ(made + "c/global_step1", convert(saved.files, made + "b", made + "c", 0));
    EXPECT_EQ(files_below(saved.files, "whole", ".tensor"),
              files_below(saved.files, made + "c", ".tensor"));
  }
}

TEST(CheckpointConvert, Keeps_tensor_parallel_parts) {
  MemoryFileSystem files;
  std::vector<TrainingState> states = {small_state(7, 0.5), small_state(7, 0.75)};
  for (TrainingState& state : states)
    state.partition_rules = {{"fc.weight", {.kind = PartitionKind::sliced, .axis = 0}},
                             {"fc.bias", {.kind = PartitionKind::replicated}}};
  for (const auto& saved : save_parts(states, files, {}, {.tensor = 2}))
    ASSERT_TRUE(saved) << saved.error().text;
  EXPECT_EQ("shards/global_step7", convert(files, "run", "shards", 3));
  // Every rank has its own copy of what all have alike.
  const auto of_second = ShardLoad::open(files, "shards", "", {1, 2});
  ASSERT_TRUE(of_second) << of_second.error().text;
  EXPECT_EQ(7, of_second->steps().at("fc.bias"));
  EXPECT_EQ("whole/global_step7", convert(files, "shards", "whole", 0));
  EXPECT_EQ(files_below(files, "run", ".tensor"), files_below(files, "whole", ".tensor"));
  const LoadOptions options{.tensor_parallel = ParallelRank{}};
  const auto loaded = [&](const std::string& folder) {
    TrainingState state = load_checkpoint(files, folder, options).value();
    std::ranges::sort(state.optimizer_state, {}, &FullTensor::name);
    return state;
  };
  EXPECT_TRUE(is_same_state(loaded("run"), loaded("whole")));
}

// Parameters of every rule, whole: ranks of any number make the whole of it again.
TrainingState ruled_state() {
  const auto counted = [](std::string name, Shape sizes) {
    FullTensor tensor{std::move(name), std::move(sizes), {}};
    for (std::int64_t at = 0; at < numel(tensor.sizes); ++at)
      tensor.values.push_back(static_cast<double>(at + 1) / 8);
    return tensor;
  };
  TrainingState state;
  state.parameters = {counted("rows", {12, 3}), counted("columns", {3, 12}),
                      counted("qkv", {36, 2}), counted("words", {7, 2}), counted("norm", {3})};
  state.partition_rules = {
      {"rows", {.kind = PartitionKind::sliced, .axis = 0}},
      {"columns", {.kind = PartitionKind::sliced, .axis = 1, .partition_sizes = {7, 5}}},
      {"qkv", {.kind = PartitionKind::sliced, .axis = 0, .sub_parameters = {12, 12, 12}}},
      {"words", {.kind = PartitionKind::vocabulary, .vocabulary_rows = 7}},
      {"norm", {.kind = PartitionKind::replicated}}};
  std::vector<std::string> names;
  for (const FullTensor& tensor : state.parameters) {
    names.push_back(tensor.name);
    for (const std::string key : {"exp_avg", "exp_avg_sq"}) {
      FullTensor moment = tensor;
      moment.name += "/" + key;
      for (double& value : moment.values) value *= key == "exp_avg" ? -0.5 : 0.25;
      state.optimizer_state.push_back(std::move(moment));
    }
    state.optimizer_state.push_back({tensor.name + "/step", {}, {3}});
  }
  state.groups = {{.parameters = names}};
  return state;
}

TEST(CheckpointConvert, Cuts_for_any_number_of_tensor_parallel_ranks_and_back) {
  MemoryFileSystem files;
  const auto saved = save_checkpoint(ruled_state(), files, "whole");
  ASSERT_TRUE(saved) << saved.error().text;
  std::string from = "whole";
  int step = 0;
  for (const auto& [data, tensor] :
       std::vector<std::pair<int, int>>{{0, 2}, {2, 3}, {5, 1}, {3, 4}, {0, 6}, {0, 1}}) {
    const std::string to = "made" + std::to_string(++step);
    SCOPED_TRACE(to);
    const auto made =
        convert_checkpoint(files, from, to, {.data_ranks = data, .tensor_ranks = tensor});
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_TRUE(problems_in(files, to).empty());
    from = to;
  }
  const LoadTargets targets = targets_of(ruled_state());  // without the rows of padding
  const LoadOptions options{.targets = targets, .tensor_parallel = ParallelRank{}};
  EXPECT_TRUE(is_same_state(load_checkpoint(files, "whole", options).value(),
                            load_checkpoint(files, from, options).value()));
}

TEST(CheckpointConvert, Gives_a_tensor_parallel_rank_what_a_load_of_the_whole_gives_it) {
  MemoryFileSystem files;
  ASSERT_TRUE(save_checkpoint(ruled_state(), files, "whole"));
  ASSERT_TRUE(convert_checkpoint(files, "whole", "three", {.tensor_ranks = 3}));
  for (int rank = 0; rank < 3; ++rank) {
    const LoadOptions options{.tensor_parallel = ParallelRank{rank, 3}};
    EXPECT_TRUE(is_same_state(load_checkpoint(files, "whole", options).value(),
                              load_checkpoint(files, "three", options).value()));
  }
}

TEST(CheckpointConvert, Names_the_parameter_that_cannot_be_cut) {
  MemoryFileSystem files;
  TrainingState state = ruled_state();
  ASSERT_TRUE(save_checkpoint(state, files, "ruled"));
  state.partition_rules.erase("norm");
  ASSERT_TRUE(save_checkpoint(state, files, "unruled"));
  state.partition_rules["norm"] = {.kind = PartitionKind::inferred, .axis = 1};
  ASSERT_TRUE(save_checkpoint(state, files, "inferred"));
  const auto refused = [&](const std::string& from, int tensor) {
    const auto made = convert_checkpoint(files, from, "made", {.tensor_ranks = tensor});
    EXPECT_FALSE(files.exists("made"));
    return made ? *made : made.error().text;
  };
  EXPECT_THAT(refused("ruled", 5), HasSubstr("'rows/fp32' does not fit: 12 along axis 0"));
  EXPECT_THAT(refused("unruled", 2), HasSubstr("no partition rule says how 'norm' is shared"));
  EXPECT_THAT(refused("inferred", 2), HasSubstr("no partition rule says how 'norm' is shared"));
  state = ruled_state();
  state.partition_rules["rows"].experts = 12;
  ASSERT_TRUE(save_checkpoint(state, files, "experts"));
  EXPECT_THAT(refused("experts", 2), HasSubstr("has parts of expert-parallel ranks"));
}

TEST(CheckpointConvert, Keeps_every_bit_where_blocks_have_several_dtypes) {
  MemoryFileSystem files;
  const std::vector<double> values = {0.1, -0.0, 0x1p-1074, 1.5, 2.5, 3.5};
  ASSERT_TRUE(
      save_checkpoint({.parameters = {{"w", {6}, values}}, .optimizer_state = {}}, files, "whole"));
  // Each rank's block has the dtype of the whole; here one is made narrower by hand.
  ASSERT_EQ("shards/global_step0", convert(files, "whole", "shards", 2));
  const std::string folder = "shards/global_step0/";
  const std::string bytes = tensor_bytes({"w/fp32", {3}, {1.5, 2.5, 3.5}}, DType::bfloat16);
  files.set_bytes(folder + "shards.tp0.dp1/0.tensor", bytes);
  const std::string part_path = folder + "shards.tp0.dp1.json";
  auto part = parse_shard_part(files.bytes_of(part_path), part_path).value();
  part.blocks[0].file = record_of(bytes);
  files.set_bytes(part_path, shard_part_text(part));
  auto manifest = parse_manifest(files.bytes_of(folder + "manifest.json"), folder).value();
  manifest.parts[1] = record_of(files.bytes_of(part_path));
  files.set_bytes(folder + "manifest.json", manifest_text(manifest));
  ASSERT_EQ("made/global_step0", convert(files, "shards", "made", 0));
  EXPECT_EQ(files_below(files, "whole", ".tensor"), files_below(files, "made", ".tensor"));
}

TEST(CheckpointConvert, Holds_no_more_than_a_block) {
  MemoryFileSystem inner;
  constexpr std::int64_t kElements = 5 * kBlockElements / 2;
  {
    const std::vector<double> values(static_cast<std::size_t>(kElements), 1.25);
    MemoryFileSystem first;
    ASSERT_TRUE(save_checkpoint({.parameters = {{"w", {kElements}, values}}}, first, "whole"));
    inner = first.after_crash(CrashLoss::nothing);
  }
  ASSERT_EQ("shards/global_step0", convert(inner, "whole", "shards", 1));
  ASSERT_EQ("again/global_step0", convert(inner, "shards", "again", 0));
  EXPECT_GE(static_cast<std::size_t>(4 * kBlockElements), inner.largest_piece());
  EXPECT_LT(static_cast<std::size_t>(2 * kBlockElements), inner.largest_piece());
  EXPECT_EQ(files_below(inner, "whole", ".tensor"), files_below(inner, "again", ".tensor"));
}

TEST(CheckpointConvert, Cuts_tensors_of_several_blocks_along_their_columns) {
  MemoryFileSystem files;
  FullTensor weight{"w", {3, kBlockElements / 2 + 20}, {}};
  for (std::int64_t at = 0; at < numel(weight.sizes); ++at)
    weight.values.push_back(static_cast<double>(at));
  const TrainingState state{.parameters = {weight},
                            .partition_rules = {{"w", {.kind = PartitionKind::sliced, .axis = 1}}}};
  ASSERT_TRUE(save_checkpoint(state, files, "whole"));
  ASSERT_TRUE(convert_checkpoint(files, "whole", "four", {.data_ranks = 1, .tensor_ranks = 4}));
  ASSERT_TRUE(convert_checkpoint(files, "four", "two", {.tensor_ranks = 2}));
  ASSERT_TRUE(convert_checkpoint(files, "two", "again", {.tensor_ranks = 1}));
  EXPECT_EQ(files_below(files, "whole", ".tensor"), files_below(files, "again", ".tensor"));
}

TEST(CheckpointConvert, Refuses_what_is_damaged_or_not_free) {
  BothLayouts saved;
  save_both_layouts(saved, OptimizerType::adam);
  EXPECT_THAT(convert(saved.files, "shards", "whole", 0), HasSubstr("whole: holds a checkpoint"));
  EXPECT_THAT(convert(saved.files, "shards", "whole/global_step1", 0),
              HasSubstr("global_step1: holds a checkpoint"));
  const std::string path = "whole" + files_below(saved.files, "whole", ".tensor").begin()->first;
  std::string bytes = saved.files.bytes_of(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  saved.files.set_bytes(path, bytes);
  EXPECT_THAT(convert(saved.files, "whole", "made", 2), StartsWith("error: " + path));
  EXPECT_FALSE(saved.files.exists("made"));
}

TEST(CheckpointConvert, That_fails_anywhere_leaves_no_checkpoint) {
  BothLayouts saved;
  save_both_layouts(saved, OptimizerType::sgd);
  for (const int ranks : {0, 3})
    for (const FileFaultKind kind :
         {FileFaultKind::io_error, FileFaultKind::no_space, FileFaultKind::crash}) {
      bool has_failed = true;
      int operations = 0;
      for (; has_failed; ++operations) {
        MemoryFileSystem files = saved.files.after_crash(CrashLoss::nothing);
        files.set_fault(kind, operations);
        const std::string made = convert(files, ranks > 0 ? "whole" : "shards", "made", ranks);
        has_failed = made.starts_with("error: ");
        MemoryFileSystem later = kind == FileFaultKind::crash
                                     ? files.after_crash(CrashLoss::at_random, 7)
                                     : files.after_crash(CrashLoss::nothing);
        const bool is_there = later.exists("made/latest");
        if (!has_failed || is_there) {
          EXPECT_TRUE(problems_in(later, "made").empty()) << operations;
        }
        EXPECT_TRUE(problems_in(later, ranks > 0 ? "whole" : "shards").empty());
        ASSERT_GT(2000, operations);
      }
      EXPECT_LT(20, operations);
    }
}

TEST(CheckpointConvert, Stops_when_it_is_asked_to) {
  BothLayouts saved;
  save_both_layouts(saved, OptimizerType::adam);
  bool is_done = false;
  int stopped = 0;
  int while_writing = 0;
  for (int asked = 0; !is_done; ++asked) {
    int left = asked;
    MemoryFileSystem files = saved.files.after_crash(CrashLoss::nothing);
    const auto made =
        convert_checkpoint(files, "shards", "made", {.should_stop = [&] { return left-- == 0; }});
    is_done = made.has_value();
    if (is_done) continue;
    EXPECT_EQ(ErrorCode::failed, made.error().code);
    EXPECT_TRUE(files_below(files, "made", "").empty());
    ++stopped;
    while_writing += files.exists("made") ? 1 : 0;
  }
  EXPECT_LT(10, stopped);
  EXPECT_LT(5, while_writing);
}

TEST(RangedFiles, Give_what_is_there) {
  const std::string path = scratch_path("ranged");
  RangedFileSystem& files = posix_file_system();
  ASSERT_TRUE(write_synced(files, path, "0123456789"));
  EXPECT_EQ("345", files.read_range(path, 3, 3).value());
  EXPECT_EQ("89", files.read_range(path, 8, 5).value());
  EXPECT_EQ("", files.read_range(path, 10, 5).value());
  EXPECT_FALSE(files.read_range(path + "none", 0, 5));
  EXPECT_FALSE(files.read_range("/", 0, 5));
  ASSERT_TRUE(files.remove_all(path));
}

TEST(RunningChecksum, Is_that_of_all_pieces) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes.push_back(static_cast<char>(i * 7));
  RunningChecksum running;
  EXPECT_EQ(checksum_of(""), running.text());
  for (std::size_t at = 0; at < bytes.size(); at += 613)
    running.add(std::string_view(bytes).substr(at, 613));
  EXPECT_EQ(checksum_of(bytes), running.text());
}

}  // namespace
}  // namespace zeroproof
