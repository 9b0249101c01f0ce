// Which GPU a process takes, and what all of them together make of it.
#include "engine/runtime/process/device_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

Launch process(std::optional<int> local_rank) {
  return {.launcher = "Slurm", .rank = 5, .size = 8, .local_rank = local_rank};
}

TEST(DeviceAssignment, Is_the_GPU_of_the_processs_number_on_its_machine) {
  EXPECT_EQ(1, gpu_seat_of(process(1), 4).ordinal);
  EXPECT_EQ("", gpu_seat_of(process(1), 4).problem);
}

TEST(DeviceAssignment, Is_the_only_one_where_a_launcher_shows_each_process_its_own) {
  EXPECT_EQ(0, gpu_seat_of(process(3), 1).ordinal);
  EXPECT_EQ("", gpu_seat_of(process(3), 1).problem);
}

TEST(DeviceAssignment, Says_what_is_missing) {
  EXPECT_THAT(gpu_seat_of(process(3), 2).problem, HasSubstr("needs 4 GPUs there, and CUDA sees 2"));
  EXPECT_THAT(gpu_seat_of(process(std::nullopt), 2).problem, HasSubstr("set LOCAL_RANK"));
}

TEST(DeviceAssignment, Is_for_one_process) {
  const DeviceAssignment a{.device = "0000:01:00.0 of node0"};
  const DeviceAssignment b{.device = "0000:01:00.0 of node1"};
  const DeviceAssignment none{.problem = "CUDA sees no GPU"};
  EXPECT_EQ("", problem_of({a, b}));
  EXPECT_THAT(problem_of({a, b, a}), HasSubstr("ranks 0 and 2 have the same GPU (0000:01:00.0"));
  EXPECT_EQ("rank 1: CUDA sees no GPU", problem_of({a, none}));
}

}  // namespace
}  // namespace zeroproof
