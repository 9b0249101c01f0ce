#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "engine/checkpoint/checkpoint.h"
#include "engine/files/forwarding_files.h"
#include "engine/files/posix_file_system.h"
#include "tests/engine/training_states.h"
#include "tests/scratch_path.h"

namespace zeroproof {
namespace {

const TrainingState kOldState = small_state(1, 0.25);
const TrainingState kNewState = small_state(2, 0.75);
const LoadOptions kProcessLoad = {.tensor_parallel = ParallelRank{}};

// The machine's file system, which kills its process before the n-th operation that changes
// something, or in the middle of it if it is a write.
class KillingFileSystem final : public ForwardingFiles<FileSystem> {
 public:
  explicit KillingFileSystem(int operations)
      : ForwardingFiles(posix_file_system()), left_(operations) {}

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    step();
    auto file = ForwardingFiles::create(path);
    if (!file) return tl::unexpected(file.error());
    return std::make_unique<File>(*this, std::move(*file));
  }
  FileResult<void> make_folders(const std::string& path) override {
    step();
    return ForwardingFiles::make_folders(path);
  }
  FileResult<void> rename(const std::string& from, const std::string& to) override {
    step();
    return ForwardingFiles::rename(from, to);
  }
  FileResult<void> remove_all(const std::string& path) override {
    step();
    return ForwardingFiles::remove_all(path);
  }
  FileResult<void> sync_folder(const std::string& path) override {
    step();
    return ForwardingFiles::sync_folder(path);
  }

 private:
  class File final : public WritableFile {
   public:
    File(KillingFileSystem& files, std::unique_ptr<WritableFile> below)
        : files_(files), below_(std::move(below)) {}

    FileResult<std::size_t> write_some(std::string_view bytes) override {
      if (files_.left_ == 0) (void)below_->write_some(bytes.substr(0, bytes.size() / 2));
      files_.step();
      return below_->write_some(bytes);
    }
    FileResult<void> sync() override {
      files_.step();
      return below_->sync();
    }

   private:
    KillingFileSystem& files_;
    std::unique_ptr<WritableFile> below_;
  };

  void step() {
    if (left_-- == 0) ::kill(::getpid(), SIGKILL);
  }

  int left_;
};

// A process that saves the new state; true if it lived to the end.
bool save_in_process(const std::string& folder, const std::string& tag, int operations) {
  const pid_t child = ::fork();
  if (child == 0) {
    KillingFileSystem files(operations);
    ::_exit(save_checkpoint(kNewState, files, folder, {.tag = tag}) ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
  return WIFEXITED(status);
}

class KilledSave : public ::testing::TestWithParam<std::string> {};

TEST_P(KilledSave, Leaves_the_previous_or_the_new_checkpoint_at_every_operation) {
  const std::string folder = scratch_path("killed");
  FileSystem& files = posix_file_system();
  int old_ones = 0;
  int new_ones = 0;
  bool has_lived = false;
  for (int operations = 0; !has_lived; ++operations) {
    ASSERT_TRUE(files.remove_all(folder));
    ASSERT_TRUE(save_checkpoint(kOldState, files, folder));
    has_lived = save_in_process(folder, GetParam(), operations);
    const auto loaded = load_checkpoint(files, folder, kProcessLoad);
    ASSERT_TRUE(loaded) << "operation " << operations << ": " << loaded.error().text;
    const bool is_new = is_same_state(*loaded, kNewState);
    ASSERT_TRUE(is_new || is_same_state(*loaded, kOldState)) << "operation " << operations;
    ASSERT_TRUE(is_new || !has_lived);
    (is_new ? new_ones : old_ones) += 1;
  }
  EXPECT_GT(old_ones, 30);
  EXPECT_GT(new_ones, 1);
  ASSERT_TRUE(files.remove_all(folder));
}

INSTANTIATE_TEST_SUITE_P(Each, KilledSave, ::testing::Values("global_step1", "global_step2"),
                         [](const auto& each) { return each.param; });

TEST(PosixFileSystem, Says_that_a_device_is_full) {
  const auto written = write_synced(posix_file_system(), "/dev/full", "bytes");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().reason, "No space left on device");
}

// The kernel takes the first bytes of a write that passes the limit, and refuses the next.
TEST(PosixFileSystem, A_write_that_is_cut_short_is_an_error_and_the_old_checkpoint_loads) {
  const std::string folder = scratch_path("limited");
  FileSystem& files = posix_file_system();
  ASSERT_TRUE(files.remove_all(folder));
  ASSERT_TRUE(save_checkpoint(kOldState, files, folder));
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100, 100};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    const auto saved = save_checkpoint(kNewState, files, folder);
    const bool is_named = !saved && saved.error().text.find(
                                        ": cannot be written: File too large") != std::string::npos;
    ::_exit(is_named ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(is_same_state(load_checkpoint(files, folder, kProcessLoad).value(), kOldState));
  ASSERT_TRUE(files.remove_all(folder));
}

}  // namespace
}  // namespace zeroproof
