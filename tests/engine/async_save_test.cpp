// Saves that go on while training does: what they hold, who waits for whom, and what fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "engine/checkpoint/checkpoint.h"
#include "engine/files/forwarding_files.h"
#include "engine/runtime/host/shared_files.h"
#include "model/cpu_ops.h"
#include "tests/engine/memory_file_system.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

// A disk that takes no file until it is opened, or refuses what a rank writes.
class GatedFiles final : public ForwardingFiles<FileSystem> {
 public:
  using ForwardingFiles::ForwardingFiles;

  void open() { gate_.set_value(); }
  void refuse(std::string part) { refused_ = std::move(part); }

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    opened_.wait();
    if (!refused_.empty() && path.find(refused_) != std::string::npos)
      return tl::unexpected(FileFault{"No space left on device"});
    return ForwardingFiles::create(path);
  }

 private:
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  std::string refused_;
};

struct Disk {
  MemoryFileSystem memory;
  SharedFiles shared{memory};
  GatedFiles gated{shared};
};

struct AsyncCase {
  int ranks = 2;
  int stage = 3;
  CheckpointLayout layout = CheckpointLayout::shards;
};

std::string name_of_async_case(const ::testing::TestParamInfo<AsyncCase>& info) {
  const AsyncCase& of = info.param;
  return (of.layout == CheckpointLayout::shards ? "Shards" : "Universal") +
         std::to_string(of.ranks) + "RanksStage" + std::to_string(of.stage);
}

// A rank that trains and saves.
class Trainer {
 public:
  Trainer(const AsyncCase& of, Runtime& runtime) : layout_(of.layout), runtime_(runtime) {
    engine_ = Engine::initialize(ag_, model_, {.stage = of.stage}, runtime).value();
  }

  void step() {
    const Tensor x = filled({2, 4}, 0.1);
    engine_->backward(engine_->forward(x));
    engine_->step();
  }
  Result<void> async_save(FileSystem& files) {
    return engine_->async_save_checkpoint("run", options(files));
  }
  Result<void> save(FileSystem& files) { return engine_->save_checkpoint("run", options(files)); }
  Result<void> load(FileSystem& files) { return engine_->load_checkpoint("run", options(files)); }
  Engine& engine() { return *engine_; }
  bool is_first() const { return runtime_.rank() == 0; }

  // Of all ranks, as values alone.
  std::vector<std::vector<double>> state() {
    std::vector<std::vector<double>> values;
    for (const FullTensor& tensor : engine_->full_parameters()) values.push_back(tensor.values);
    for (const FullTensor& tensor : engine_->full_optimizer_state())
      values.push_back(tensor.values);
    return values;
  }

 private:
  EngineCheckpointOptions options(FileSystem& files) const {
    return {.files = &files, .layout = layout_};
  }

  const CpuOps ops_;
  Autograd ag_{ops_};
  MlpModel model_;
  const CheckpointLayout layout_;
  Runtime& runtime_;
  std::unique_ptr<Engine> engine_;
};

void on_ranks(const AsyncCase& of, const std::function<void(Trainer&)>& body) {
  HostWorld({.world_size = of.ranks}).run([&](Runtime& runtime) {
    Trainer trainer(of, runtime);
    body(trainer);
  });
}

class AsyncSave : public ::testing::TestWithParam<AsyncCase> {};

// A save that waited for its disk would never come to open() it.
TEST_P(AsyncSave, Holds_what_was_there_when_it_began_while_training_goes_on) {
  Disk disk;
  on_ranks(GetParam(), [&](Trainer& trainer) {
    trainer.step();
    const auto saved = trainer.state();
    ASSERT_TRUE(trainer.async_save(disk.gated));
    trainer.step();
    trainer.step();
    const auto later = trainer.state();
    if (trainer.is_first()) disk.gated.open();
    const auto done = trainer.engine().wait_checkpoint();
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(later, trainer.state());
    ASSERT_TRUE(trainer.load(disk.gated));
    EXPECT_EQ(saved, trainer.state());
    EXPECT_EQ(1, trainer.engine().global_steps());
  });
}

TEST_P(AsyncSave, Is_the_one_that_a_save_at_the_same_place_makes) {
  Disk disk;
  Disk other;
  disk.gated.open();
  other.gated.open();
  on_ranks(GetParam(), [&](Trainer& trainer) {
    trainer.step();
    ASSERT_TRUE(trainer.async_save(disk.gated));
    ASSERT_TRUE(trainer.save(other.gated));  // waits for the one before
  });
  ASSERT_EQ(disk.memory.all_files(), other.memory.all_files());
  for (const std::string& path : disk.memory.all_files())
    EXPECT_EQ(disk.memory.bytes_of(path), other.memory.bytes_of(path)) << path;
}

// No rank waits for it: the leader's thread finishes it when all have written.
TEST_P(AsyncSave, Becomes_a_checkpoint_without_a_wait) {
  Disk disk;
  disk.gated.open();
  on_ranks(GetParam(), [&](Trainer& trainer) {
    ASSERT_TRUE(trainer.async_save(disk.gated));
    while (!disk.shared.exists("run/latest")) std::this_thread::yield();
    trainer.step();
    ASSERT_TRUE(trainer.load(disk.gated));
    EXPECT_EQ(0, trainer.engine().global_steps());
  });
}

TEST_P(AsyncSave, That_fails_on_one_rank_fails_on_all_and_leaves_the_one_before) {
  const AsyncCase of = GetParam();
  const bool is_last = of.layout == CheckpointLayout::shards;
  Disk disk;
  disk.gated.open();
  std::vector<std::string> before;
  on_ranks(of, [&](Trainer& trainer) {
    trainer.step();
    const auto saved = trainer.state();
    ASSERT_TRUE(trainer.save(disk.gated));
    if (trainer.is_first()) {
      before = disk.memory.all_files();
      disk.gated.refuse(is_last ? "dp" + std::to_string(of.ranks - 1) : "exp_avg_sq");
    }
    ASSERT_TRUE(trainer.engine().wait_checkpoint());
    trainer.step();
    trainer.state();  // all ranks have seen refuse()
    ASSERT_TRUE(trainer.async_save(disk.gated));
    trainer.step();
    const auto done = trainer.engine().wait_checkpoint();
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text,
                ::testing::AnyOf(HasSubstr("No space left on device"), HasSubstr("see its message"),
                                 HasSubstr("see the error of")));
    EXPECT_TRUE(trainer.engine().wait_checkpoint());  // said once
    if (trainer.is_first()) {
      EXPECT_EQ(before, disk.memory.all_files());
      disk.gated.refuse("");
    }
    ASSERT_TRUE(trainer.load(disk.gated));
    EXPECT_EQ(saved, trainer.state());
    ASSERT_TRUE(trainer.async_save(disk.gated));
    EXPECT_TRUE(trainer.engine().wait_checkpoint());
  });
}

TEST_P(AsyncSave, Is_given_up_with_its_engine_and_the_next_one_goes_on) {
  Disk disk;
  Disk healthy;
  healthy.gated.open();
  on_ranks(GetParam(), [&](Trainer& trainer) {
    ASSERT_TRUE(trainer.async_save(disk.gated));
    trainer.step();
    trainer.state();
    if (trainer.is_first()) disk.gated.open();
  });
  on_ranks(GetParam(), [&](Trainer& trainer) {
    trainer.step();
    ASSERT_TRUE(trainer.async_save(disk.gated));
    ASSERT_TRUE(trainer.engine().wait_checkpoint());
    ASSERT_TRUE(trainer.load(disk.gated));
    EXPECT_EQ(1, trainer.engine().global_steps());
  });
  EXPECT_FALSE(disk.memory.exists("run/.saving"));
}

INSTANTIATE_TEST_SUITE_P(Each, AsyncSave,
                         ::testing::Values(AsyncCase{1, 0}, AsyncCase{2, 1}, AsyncCase{3, 3},
                                           AsyncCase{1, 1, CheckpointLayout::universal},
                                           AsyncCase{3, 2, CheckpointLayout::universal}),
                         name_of_async_case);

}  // namespace
}  // namespace zeroproof
