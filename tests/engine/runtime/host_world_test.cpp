// Ranks as threads: how a world starts, fails and ends.
#include "zeroproof/engine/runtime/host/host_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "engine/runtime/host/rendezvous.h"
#include "tests/engine/runtime/text_of_error.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Span number_on(Runtime& runtime, Tensor& keep, double value, std::int64_t elements = 1) {
  keep = runtime.memory().allocate(elements, DType::float32);
  runtime.kernels().fill(runtime.stream(StreamRole::compute), Span::of(keep), value);
  return Span::of(keep);
}

void all_reduce(Runtime& runtime, std::int64_t elements = 1) {
  Tensor keep;
  const Span data = number_on(runtime, keep, 1.0, elements);
  runtime.group(GroupKind::data)
      .all_reduce(runtime.stream(StreamRole::compute), data, ReduceOp::sum);
}

template <class Error>
bool is_a(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Error&) {
    return true;
  } catch (...) {
  }
  return false;
}

TEST(HostWorld, Runs_the_program_once_on_every_rank_and_again) {
  HostWorld world({.world_size = 4});
  std::vector<int> runs(4, 0);
  const auto program = [&](Runtime& runtime) {
    EXPECT_EQ(4, runtime.world_size());
    ++runs[static_cast<std::size_t>(runtime.rank())];
    all_reduce(runtime);
  };
  world.run(program);
  world.run(program);
  EXPECT_THAT(runs, ElementsAre(2, 2, 2, 2));
}

TEST(HostWorld, Rethrows_what_the_failing_rank_threw_and_lets_no_other_hang) {
  HostWorld world({.world_size = 3});
  const auto program = [](Runtime& runtime) {
    if (runtime.rank() == 2) throw std::out_of_range("a defect of rank 2");
    all_reduce(runtime);
  };
  EXPECT_THROW(world.run(program), std::out_of_range);
}

TEST(HostWorld, Tells_every_rank_which_one_failed) {
  HostWorld world({.world_size = 3});
  const auto errors = world.try_run([](Runtime& runtime) {
    if (runtime.rank() == 1) throw std::out_of_range("a defect");
    all_reduce(runtime);
  });
  EXPECT_TRUE(is_a<std::out_of_range>(errors[1]));
  for (const std::size_t rank : {0U, 2U}) {
    EXPECT_TRUE(is_a<host::GroupAborted>(errors[rank]));
    EXPECT_EQ("rank 1 failed: a defect", text_of(errors[rank]));
  }
}

TEST(HostWorld, Prefers_the_lowest_rank_that_failed_itself) {
  HostWorld world({.world_size = 4});
  const auto program = [](Runtime& runtime) {
    if (runtime.rank() == 0) all_reduce(runtime);
    throw std::runtime_error("rank " + std::to_string(runtime.rank()));
  };
  try {
    world.run(program);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ("rank 1", error.what());
  }
}

TEST(HostWorld, Notices_at_once_that_a_rank_ended_without_the_collective) {
  for (const int delay_ms : {0, 20}) {  // before the others wait, and after
    HostWorld world({.world_size = 3});
    const auto errors = world.try_run([&](Runtime& runtime) {
      if (runtime.rank() != 1) return all_reduce(runtime);
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    });
    EXPECT_FALSE(errors[1]);
    for (const std::size_t rank : {0U, 2U})
      EXPECT_THAT(text_of(errors[rank]), AllOf(HasSubstr("data group [0, 1, 2], collective 0"),
                                               HasSubstr("rank 1 of the group ended without it")));
  }
}

TEST(HostWorld, Times_out_with_the_missing_ranks_in_two_groups_in_two_orders) {
  HostWorld world({.world_size = 2, .degrees = {.sequence = 2}, .timeout_ms = 50});
  const auto errors = world.try_run([](Runtime& runtime) {
    Stream& stream = runtime.stream(StreamRole::compute);
    const bool is_data_first = runtime.rank() == 0;
    runtime.group(is_data_first ? GroupKind::data : GroupKind::sequence).barrier(stream);
    runtime.group(is_data_first ? GroupKind::sequence : GroupKind::data).barrier(stream);
  });
  const bool is_first = text_of(errors[0]).find("timed out") != std::string::npos;
  EXPECT_THAT(text_of(errors[is_first ? 0 : 1]),
              AllOf(HasSubstr("timed out after 50 ms waiting for rank"), HasSubstr("barrier")));
}

TEST(HostWorld, Fails_every_rank_for_a_collective_that_does_not_match) {
  HostWorld world({.world_size = 3});
  const auto errors = world.try_run([](Runtime& runtime) {
    all_reduce(runtime, 4);
    all_reduce(runtime, runtime.rank() == 2 ? 5 : 4);
  });
  const std::string expected =
      "data group [0, 1, 2], collective 1: rank 0 of the group issued all_reduce(sum) of 4 "
      "float32, but rank 2 of the group issued all_reduce(sum) of 5 float32";
  for (const std::exception_ptr& error : errors) {
    EXPECT_EQ(expected, text_of(error));
    EXPECT_TRUE(is_a<RuntimeFault>(error));
    EXPECT_FALSE(is_a<host::GroupAborted>(error));
  }
}

TEST(HostWorld, Stays_failed_after_an_abort) {
  HostWorld world({.world_size = 2});
  const auto errors = world.try_run([](Runtime& runtime) {
    if (runtime.rank() == 0) runtime.group(GroupKind::data).abort("enough");
    all_reduce(runtime);
  });
  for (const std::exception_ptr& error : errors) EXPECT_EQ("enough", text_of(error));
  ProcessGroup& group = world.runtime(1).group(GroupKind::data);
  Stream& stream = world.runtime(1).stream(StreamRole::compute);
  EXPECT_THROW(group.wait({}, stream), RuntimeFault);
  EXPECT_THROW(group.is_completed({}), RuntimeFault);
  EXPECT_THROW(group.barrier(stream), RuntimeFault);
}

TEST(HostWorld, Polls_an_error_that_was_not_noticed_once) {
  HostWorld world({.world_size = 2});
  world.runtime(0).group(GroupKind::tensor).abort("of rank 0's own group");
  world.runtime(0).group(GroupKind::data).abort("a link went down");
  EXPECT_EQ("a link went down", world.runtime(1).poll_error());
  EXPECT_EQ(std::nullopt, world.runtime(1).poll_error());
  Runtime& first = world.runtime(0);
  EXPECT_THROW(first.group(GroupKind::data).barrier(first.stream(StreamRole::compute)),
               RuntimeFault);
  EXPECT_EQ("of rank 0's own group", first.poll_error());
  EXPECT_EQ(std::nullopt, first.poll_error());
}

TEST(HostWorld, Lays_out_groups_as_Megatron_and_DeepSpeed_do) {
  HostWorld world({.world_size = 8, .degrees = {.sequence = 2, .tensor = 2, .expert = 2}});
  Runtime& runtime = world.runtime(5);
  EXPECT_THAT(runtime.group(GroupKind::tensor).ranks(), ElementsAre(4, 5));
  EXPECT_THAT(runtime.group(GroupKind::data).ranks(), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(runtime.group(GroupKind::sequence).ranks(), ElementsAre(5, 7));
  EXPECT_THAT(runtime.group(GroupKind::expert).ranks(), ElementsAre(5, 7));
  EXPECT_THAT(runtime.group(GroupKind::expert_data).ranks(), ElementsAre(1, 5));
  EXPECT_EQ(2, runtime.group(GroupKind::data).rank());
  EXPECT_EQ(1, runtime.group(GroupKind::expert_data).rank());
}

TEST(HostWorld, Refuses_degrees_that_do_not_divide) {
  EXPECT_THROW(HostWorld({.world_size = 3, .degrees = {.tensor = 2}}), UsageError);
  EXPECT_THROW(HostWorld({.world_size = 6, .degrees = {.sequence = 2, .tensor = 2}}), UsageError);
  EXPECT_THROW(HostWorld({.world_size = 2, .observers = {{}}}), UsageError);
}

TEST(HostWorld, Has_a_clock_that_does_not_go_back) {
  HostWorld world({});
  Clock& clock = world.runtime(0).clock();
  const std::int64_t before = clock.now_ns();
  EXPECT_LE(before, clock.now_ns());
}

}  // namespace
}  // namespace zeroproof
