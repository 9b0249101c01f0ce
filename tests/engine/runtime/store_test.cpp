// The stores of a job, in a folder and over TCP: the same promises.
#include "zeroproof/internal/engine/runtime/process/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "engine/runtime/process/byte_strings.h"
#include "tests/engine/runtime/process_stores.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ms = std::chrono::milliseconds;

class EveryStore : public ::testing::TestWithParam<StoreMaker::Kind> {
 protected:
  // Of this run, as `from` sees it in the end.
  static void expect_presence(Store& from, int rank, PeerState wanted) {
    const auto end = std::chrono::steady_clock::now() + Ms(60'000);
    const auto at = static_cast<std::size_t>(rank);
    while (from.presences()[at] != wanted && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(Ms(5));
    EXPECT_EQ(wanted, from.presences()[at]);
  }

  StoreMaker maker_{GetParam()};
};

TEST_P(EveryStore, Gives_every_process_what_one_has_set) {
  const auto a = maker_.open(0, 2);
  const auto b = maker_.open(1, 2);
  const std::string bytes("any\0bytes\n\xff", 11);
  a->set("nccl/0-1/0", bytes);
  b->set("empty", "");
  EXPECT_EQ(bytes, b->wait("nccl/0-1/0", Ms(0)));
  EXPECT_EQ(bytes, a->wait("nccl/0-1/0", Ms(0)));
  EXPECT_EQ("", a->wait("empty", Ms(0)));
  EXPECT_EQ(std::nullopt, a->wait("nccl/0-1/1", Ms(0)));
  a->remove("nccl/0-1/0");
  EXPECT_EQ(std::nullopt, b->wait("nccl/0-1/0", Ms(0)));
}

TEST_P(EveryStore, Waits_for_a_key_and_no_longer_than_it_is_told) {
  const auto a = maker_.open(0, 2);
  const auto b = maker_.open(1, 2);
  std::jthread later([&] {
    std::this_thread::sleep_for(Ms(50));
    b->set("late", std::string(3'000'000, 'x'));
  });
  const auto value = a->wait("late", Ms(120'000));
  ASSERT_TRUE(value);
  EXPECT_EQ(std::string(3'000'000, 'x'), *value);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(std::nullopt, a->wait("never", Ms(60)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, Ms(60));
}

TEST_P(EveryStore, Is_for_many_threads_of_many_processes_at_a_time) {
  constexpr int kProcesses = 4;
  constexpr int kKeys = 50;
  std::vector<std::unique_ptr<Store>> stores;
  for (int rank = 0; rank < kProcesses; ++rank) stores.push_back(maker_.open(rank, kProcesses));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kProcesses; ++rank)
    for (const bool sets : {true, false})
      threads.emplace_back([&stores, rank, sets] {
        Store& store = *stores[static_cast<std::size_t>(rank)];
        const int of = sets ? rank : (rank + 1) % kProcesses;
        for (int key = 0; key < kKeys; ++key) {
          const std::string name = std::to_string(of) + "/" + std::to_string(key);
          if (sets)
            store.set(name, name);
          else
            EXPECT_EQ(name, store.wait(name, Ms(20'000)));
        }
      });
}

TEST_P(EveryStore, Tells_who_is_here_who_has_left_and_who_was_lost) {
  auto a = maker_.open(0, 4);
  auto b = maker_.open(1, 4);
  auto c = maker_.open(2, 4);
  EXPECT_THAT(a->presences(),
              ElementsAre(PeerState::here, PeerState::here, PeerState::here, PeerState::absent));
  b->leave(Ms(0));
  b.reset();
  c.reset();
  expect_presence(*a, 1, PeerState::left);
  expect_presence(*a, 2, PeerState::lost);
  EXPECT_EQ(PeerState::here, a->presences()[0]);
}

TEST_P(EveryStore, Notices_that_a_process_was_killed) {
  const auto a = maker_.open(0, 2);
  const pid_t child = fork();
  if (child == 0) {
    const auto b = maker_.open(1, 2);
    b->set("here", "");
    ::pause();
    ::_exit(1);
  }
  ASSERT_TRUE(a->wait("here", Ms(10'000)));
  EXPECT_EQ(PeerState::here, a->presences()[1]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  expect_presence(*a, 1, PeerState::lost);
}

TEST_P(EveryStore, Keeps_rank_0_until_the_others_have_left) {
  const auto a = maker_.open(0, 2);
  auto b = maker_.open(1, 2);
  std::atomic<bool> leaves = false;
  std::jthread later([&] {
    std::this_thread::sleep_for(Ms(80));
    EXPECT_EQ("x", b->wait("last words", Ms(120'000)));
    leaves = true;
    b->leave(Ms(0));
  });
  a->set("last words", "x");
  const auto begin = std::chrono::steady_clock::now();
  a->leave(Ms(120'000));
  EXPECT_TRUE(leaves);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Ms(110'000));
}

TEST_P(EveryStore, Says_that_rank_0_did_not_come) {
  const auto store = maker_.try_open({1, 2, "run"}, 80);
  ASSERT_FALSE(store);
  EXPECT_EQ(ErrorCode::failed, store.error().code);
  EXPECT_THAT(store.error().text, HasSubstr("rank 1 of 2 waited 80 ms for rank 0"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryStore,
                         ::testing::Values(StoreMaker::Kind::file, StoreMaker::Kind::tcp),
                         [](const auto& of) {
                           return of.param == StoreMaker::Kind::file ? "file" : "tcp";
                         });

TEST(FileStore, Takes_nothing_that_an_earlier_run_left) {
  StoreMaker maker(StoreMaker::Kind::file);
  {
    const auto a = maker.open(0, 2);
    const auto b = maker.open(1, 2);
    a->set("nccl/0", "stale");
  }  // killed: no rank said that it leaves
  EXPECT_FALSE(maker.try_open({1, 2, "run"}, 50)) << "joined a run whose rank 0 is gone";
  const auto a = maker.open(0, 2);
  const auto b = maker.open(1, 2);
  EXPECT_EQ(std::nullopt, b->wait("nccl/0", Ms(0)));
  EXPECT_THAT(a->presences(), ElementsAre(PeerState::here, PeerState::here));
}

TEST(FileStore, Does_not_join_a_run_whose_rank_0_is_gone) {
  StoreMaker maker(StoreMaker::Kind::file);
  maker.open(0, 2).reset();
  EXPECT_FALSE(maker.try_open({1, 2, "run"}, 50));
}

TEST(FileStore, Does_not_join_a_run_in_which_its_rank_has_been) {
  StoreMaker maker(StoreMaker::Kind::file);
  const auto a = maker.open(0, 2);
  maker.open(1, 2)->leave(Ms(0));
  EXPECT_FALSE(maker.try_open({1, 2, "run"}, 50));
}

TEST(FileStore, Leaves_a_clean_folder_and_another_jobs_files_alone) {
  StoreMaker maker(StoreMaker::Kind::file);
  const std::string mine = maker.folder() + "/notes";
  std::filesystem::create_directory(mine);
  {
    const auto a = maker.open(0, 1);
    a->set("x", "y");
    const auto second = maker.try_open({0, 1, "run"});
    ASSERT_FALSE(second);
    EXPECT_EQ(ErrorCode::usage, second.error().code);
    EXPECT_THAT(second.error().text, HasSubstr("another job is at work in it"));
    EXPECT_EQ("y", a->wait("x", Ms(0)));
    EXPECT_TRUE(maker.try_open({0, 1, "another run"}));
    a->leave(Ms(0));
  }
  EXPECT_TRUE(std::filesystem::is_empty(maker.folder() + "/run"));
  EXPECT_TRUE(std::filesystem::exists(mine));
}

TEST(FileStore, Removes_nothing_that_no_rank_0_named) {
  StoreMaker maker(StoreMaker::Kind::file);
  const std::string run = maker.folder() + "/run";
  std::filesystem::create_directories(run + "/precious");
  std::filesystem::create_directories(run + "/run-1");
  for (const char* name : {"precious", "run-1/../precious", "..", ""}) {
    { std::ofstream(run + "/current") << name; }
    const auto a = maker.open(0, 1);
    EXPECT_TRUE(std::filesystem::exists(run + "/precious")) << name;
    a->leave(Ms(0));
  }
}

TEST(FileStore, Says_that_its_folder_cannot_be_used) {
  const auto store = FileStore::open("/proc/zeroproof", {0, 1, ""}, Ms(0));
  ASSERT_FALSE(store);
  EXPECT_EQ(ErrorCode::usage, store.error().code);
  EXPECT_THAT(store.error().text, HasSubstr("the store /proc/zeroproof: "));
}

TEST(TcpStore, Says_that_its_port_is_taken) {
  const auto taken = Listener::open("127.0.0.1", 0);
  ASSERT_TRUE(taken);
  const auto store = TcpStore::open({"127.0.0.1", taken->port(), kTestToken}, {0, 1, ""}, Ms(0));
  ASSERT_FALSE(store);
  EXPECT_EQ(ErrorCode::usage, store.error().code);
  EXPECT_THAT(store.error().text, HasSubstr("Address already in use: give another MASTER_PORT"));
}

TEST(TcpStore, Takes_nobody_of_another_run_or_twice) {
  const auto a = TcpStore::open({"127.0.0.1", 0, kTestToken}, {0, 2, "mine"}, Ms(60'000));
  ASSERT_TRUE(a);
  const auto join = [&](const StoreMember& member) {
    const auto b = TcpStore::open({"127.0.0.1", (*a)->port(), kTestToken}, member, Ms(60'000));
    return b ? std::string() : b.error().text;
  };
  EXPECT_THAT(join({1, 2, "older"}),
              HasSubstr("'mine of 2 processes', not 'older of 2 processes'"));
  EXPECT_THAT(join({1, 3, "mine"}), HasSubstr("not 'mine of 3 processes'"));
  EXPECT_EQ("", join({1, 2, "mine"}));
  EXPECT_THAT(join({1, 2, "mine"}), HasSubstr("that rank has come already"));
}

TEST(TcpStore, Survives_who_speaks_another_language) {
  const auto a = TcpStore::open({"localhost", 0, kTestToken}, {0, 2, ""}, Ms(60'000));
  ASSERT_TRUE(a) << a.error().text;
  for (const std::string& noise : {std::string("GET / HTTP/1.1"), std::string(), pack({"set"})}) {
    auto socket = connect_to("127.0.0.1", (*a)->port(), Ms(60'000));
    ASSERT_TRUE(socket);
    EXPECT_TRUE(socket->send(noise));
  }
  (*a)->set("x", "y");
  EXPECT_EQ("y", (*a)->wait("x", Ms(0)));
}

TEST(TcpStore, Throws_when_rank_0_is_gone) {
  auto a = TcpStore::open({"127.0.0.1", 0, kTestToken}, {0, 2, ""}, Ms(60'000));
  const auto b = TcpStore::open({"127.0.0.1", (*a)->port(), kTestToken}, {1, 2, ""}, Ms(60'000));
  ASSERT_TRUE(b);
  (*b)->set("x", "y");
  a->reset();
  try {
    (*b)->set("x", "z");
    FAIL() << "the store is gone";
  } catch (const RuntimeFault& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("rank 0 ended without a word: the store at 127.0."));
  }
}

TEST(FileStore, Takes_one_key_from_many_at_a_time) {
  StoreMaker maker(StoreMaker::Kind::file);
  constexpr int kProcesses = 4;
  std::vector<std::unique_ptr<Store>> stores;
  for (int rank = 0; rank < kProcesses; ++rank) stores.push_back(maker.open(rank, kProcesses));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kProcesses; ++rank)
    threads.emplace_back([&stores, rank] {
      Store& store = *stores[static_cast<std::size_t>(rank)];
      for (int round = 0; round < 50; ++round) {
        EXPECT_NO_THROW(store.set("failed", std::string(1'000, static_cast<char>('a' + rank))));
        const auto value = store.wait("failed", Ms(0));
        ASSERT_TRUE(value);
        EXPECT_EQ(std::string(1'000, value->front()), *value);
      }
    });
}

}  // namespace
}  // namespace zeroproof
