// Processes that meet, exchange, and hear of each other's end.
#include "zeroproof/engine/runtime/process/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/engine/runtime/job_processes.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Ms = std::chrono::milliseconds;

class EveryJob : public ::testing::TestWithParam<StoreMaker::Kind> {
 protected:
  StoreMaker maker_{GetParam()};
};

TEST_P(EveryJob, Gathers_and_tells_round_after_round) {
  const auto errors = run_job(maker_, 3, [](const std::shared_ptr<Job>& job) {
    for (int round = 0; round < 20; ++round) {
      const auto all = job->all_gather(std::to_string(100 * round + job->rank()));
      for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(std::to_string(100 * round + rank), all.at(static_cast<std::size_t>(rank)));
      EXPECT_EQ("7", job->broadcast(job->rank() == 0 ? "7" : "not heard"));
      job->barrier();
    }
    EXPECT_FALSE(job->failure());
  });
  for (const auto& error : errors) EXPECT_EQ("", what_of(error));
}

TEST_P(EveryJob, Names_the_processes_that_did_not_come) {
  auto store = maker_.open(0, 4);
  const auto second = maker_.open(2, 4);
  second->set("here/2", "a process");
  try {
    Job job({.launcher = "Slurm", .rank = 0, .size = 4}, std::move(store), Ms(120));
    FAIL() << "two of four are missing";
  } catch (const RuntimeFault& fault) {
    EXPECT_THAT(fault.what(),
                AllOf(HasSubstr("rank 0 of 4 waited 120 ms for ranks 1, 3, which did not come"),
                      HasSubstr("(Slurm, store ")));
  }
}

TEST_P(EveryJob, Tells_all_what_one_failed_of) {
  const auto errors = run_job(maker_, 3, [](const std::shared_ptr<Job>& job) {
    job->barrier();
    if (job->rank() == 1) return job->fail("rank 1 failed: no memory");
    for (;;) job->all_gather("");
  });
  EXPECT_EQ("", what_of(errors[1]));
  EXPECT_EQ("rank 1 failed: no memory", what_of(errors[0]));
  EXPECT_EQ("rank 1 failed: no memory", what_of(errors[2]));
}

TEST_P(EveryJob, Names_who_ended_before_its_part) {
  const auto errors = run_job(maker_, 2, [](const std::shared_ptr<Job>& job) {
    if (job->rank() == 0) job->wait("x/1", 1, "its x");
  });
  EXPECT_THAT(what_of(errors[0]), AllOf(HasSubstr("rank 1 (process "), HasSubstr("without its x")));
}

TEST_P(EveryJob, Names_who_takes_too_long) {
  std::atomic<bool> is_over = false;
  const auto errors = run_job(
      maker_, 2,
      [&](const std::shared_ptr<Job>& job) {
        if (job->rank() == 1) return is_over.wait(false);
        try {
          job->wait("x/1", 1, "its x");
        } catch (...) {
          is_over = true;
          is_over.notify_all();
          throw;
        }
      },
      150);
  EXPECT_THAT(what_of(errors[0]),
              AllOf(HasSubstr("rank 0 waited 150 ms for rank 1 (process "), HasSubstr("): its x")));
}

TEST_P(EveryJob, Calls_who_listens_once_when_a_process_is_killed) {
  auto store = maker_.open(0, 2);
  const pid_t child = fork();
  if (child == 0) {
    Job job({.rank = 1, .size = 2}, maker_.open(1, 2), Ms(120'000));
    ::pause();
    ::_exit(1);
  }
  Job job({.rank = 0, .size = 2}, std::move(store), Ms(120'000));
  std::atomic<int> calls = 0;
  const auto broken = job.on_failure([&](const std::string&) { throw std::runtime_error("mine"); });
  const auto handle = job.on_failure([&](const std::string&) { ++calls; });
  auto gone = job.on_failure([&](const std::string&) { calls += 100; });
  gone.reset();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THROW(job.wait("x", 1, "x"), RuntimeFault);
  EXPECT_THAT(job.failure().value_or(""),
              HasSubstr("rank 1 (process " + std::to_string(child) + " on "));
  EXPECT_THAT(job.failure().value_or(""), HasSubstr("ended without a word"));
  while (calls == 0) std::this_thread::sleep_for(Ms(5));
  std::this_thread::sleep_for(Ms(250));  // several looks of the job
  EXPECT_EQ(1, calls);
  const auto late = job.on_failure([&](const std::string&) { ++calls; });
  EXPECT_EQ(2, calls);
}

TEST_P(EveryJob, Explains_an_error_by_the_process_that_was_lost) {
  const auto error = std::make_exception_ptr(RuntimeFault("ncclRemoteError"));
  auto store = maker_.open(0, 2);
  std::unique_ptr<Store> other = maker_.open(1, 2);
  other->set("here/1", "process 7 on node1");
  const Job job({.rank = 0, .size = 2}, std::move(store), Ms(120'000));
  EXPECT_EQ("ncclRemoteError", what_of(job.explained(error)));
  other.reset();
  EXPECT_EQ("rank 1 (process 7 on node1) ended without a word", what_of(job.explained(error)));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryJob,
                         ::testing::Values(StoreMaker::Kind::file, StoreMaker::Kind::tcp),
                         [](const auto& of) {
                           return of.param == StoreMaker::Kind::file ? "file" : "tcp";
                         });

Error join_error(const Launch& launch, const JobOptions& options) {
  const auto job = Job::join(launch, options);
  return job ? Error() : job.error();
}

TEST(Job, Says_how_processes_can_reach_each_other) {
  const Launch launch{.launcher = "Slurm", .rank = 0, .size = 2};
  Error error = join_error(launch, {});
  EXPECT_EQ(ErrorCode::usage, error.code);
  EXPECT_THAT(error.text, AllOf(HasSubstr("Slurm started 2 processes"), HasSubstr("MASTER_ADDR"),
                                HasSubstr("--store FOLDER")));
  error = join_error({.launcher = "Slurm", .rank = 0, .size = 2, .port = 29500}, {});
  EXPECT_THAT(error.text, HasSubstr("of MASTER_ADDR and MASTER_PORT one is set"));
}

TEST(Job, Says_that_the_address_is_none) {
  const Error error = join_error({.launcher = "torchrun",
                                  .rank = 1,
                                  .size = 2,
                                  .master_address = "no such host",
                                  .port = 29500},
                                 {.timeout = Ms(100)});
  EXPECT_EQ(ErrorCode::usage, error.code);
  EXPECT_THAT(error.text, HasSubstr("the address 'no such host' of rank 0 (MASTER_ADDR)"));
}

TEST(Job, Ends_in_time_when_rank_0_never_starts) {
  const Error error = join_error(
      {.launcher = "torchrun", .rank = 1, .size = 2, .master_address = "127.0.0.1", .port = 1},
      {.timeout = Ms(100)});
  EXPECT_EQ(ErrorCode::failed, error.code);
  EXPECT_THAT(error.text, HasSubstr("rank 1 of 2 waited 100 ms for rank 0: no process listens at "
                                    "127.0.0.1:1"));
}

}  // namespace
}  // namespace zeroproof
