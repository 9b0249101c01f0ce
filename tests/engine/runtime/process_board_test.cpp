// The board of ranks that are processes, between processes of the test.
#include "engine/runtime/process_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <deque>
#include <stdexcept>
#include <thread>

#include "tests/engine/runtime/forked.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;
using Addresses = ProcessBoard::Addresses;

constexpr int kRanks = 3;

void wait_for_ever(std::int64_t) {}

// A process that ends without a word of its test's mistakes ends with 1.
#define MUST(condition) \
  if (!(condition)) return 1

class ProcessBoardTest : public ::testing::Test {
 protected:
  // `body(board, rank)` in a process each; their exit codes.
  template <class Body>
  std::vector<int> on_all_ranks(Body body) {
    SharedRegion made(ProcessBoard::bytes_of(kRanks));
    const std::string place = made.place();
    std::deque<Forked> processes;
    for (int rank = 0; rank < kRanks; ++rank)
      processes.emplace_back([&, rank] {
        ProcessBoard board(std::make_shared<SharedRegion>(place, made.bytes()), rank, kRanks);
        return body(board, rank);
      });
    std::vector<int> codes;
    for (Forked& process : processes) codes.push_back(process.exit_code());
    return codes;
  }
  const std::vector<int> all_well_ = std::vector<int>(kRanks, 0);
};

// Of round n, rank r: some addresses, none at all now and then, more than one place takes.
Addresses addresses_of(int round, int rank) {
  Addresses out;
  const int count = round % 7 == 0 ? 0 : round % 5 == 0 ? 200 + 64 * rank : 1 + rank;
  for (int i = 0; i < count; ++i)
    out.push_back(
        {static_cast<std::uint64_t>(rank + 1), static_cast<std::uint64_t>(round * 1000 + i)});
  return out;
}

TEST_F(ProcessBoardTest, Tells_every_process_what_all_have_told_in_every_round) {
  const auto codes = on_all_ranks([](ProcessBoard& board, int rank) {
    for (int round = 0; round < 300; ++round) {
      // Ranks come late in turns.
      if (round % kRanks == rank) std::this_thread::sleep_for(std::chrono::microseconds(100));
      const auto all =
          board.exchange("call " + std::to_string(round), addresses_of(round, rank), wait_for_ever);
      MUST(all.size() == kRanks);
      for (int of = 0; of < kRanks; ++of)
        MUST(all[static_cast<std::size_t>(of)] == addresses_of(round, of));
    }
    return 0;
  });
  EXPECT_EQ(all_well_, codes);
}

TEST_F(ProcessBoardTest, Names_both_calls_in_every_process_where_two_differ) {
  const auto codes = on_all_ranks([](ProcessBoard& board, int rank) {
    try {
      board.exchange(rank == 2 ? "reduce" : "gather", addresses_of(5, rank), wait_for_ever);
    } catch (const RuntimeFault& fault) {
      const std::string text = fault.what();
      return text.find("rank 0 gather, rank 2 reduce") == text.npos ? 2 : 0;
    }
    return 3;
  });
  EXPECT_EQ(all_well_, codes);
}

// Longer than what is published of it.
TEST_F(ProcessBoardTest, Sees_calls_that_differ_in_their_last_letter) {
  const auto codes = on_all_ranks([](ProcessBoard& board, int rank) {
    const std::string begin(1000, 'x');
    board.exchange(begin, {}, wait_for_ever);
    try {
      board.exchange(begin + (rank == 1 ? "a" : "b"), {}, wait_for_ever);
    } catch (const RuntimeFault&) {
      return 0;
    }
    return 3;
  });
  EXPECT_EQ(all_well_, codes);
}

TEST(ProcessBoardAlone, Is_left_by_a_rank_that_hears_of_a_killed_one) {
  const auto region = std::make_shared<SharedRegion>(ProcessBoard::bytes_of(2));
  ProcessBoard board(region, 0, 2);
  Forked other([&] {
    ProcessBoard own(region, 1, 2);
    for (;;) own.exchange("a call", {}, wait_for_ever);
    return 0;
  });
  for (int round = 0; round < 20; ++round) board.exchange("a call", {}, wait_for_ever);
  ::kill(other.process(), SIGKILL);
  const auto give_up = [&](std::int64_t waited_ms) {
    if (other.has_ended()) throw std::runtime_error("rank 1 is gone");
    ASSERT_LT(waited_ms, 10'000);
  };
  try {
    for (;;) board.exchange("a call", {}, give_up);
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ("rank 1 is gone", error.what());
  }
}

TEST(ProcessBoardAlone, Tells_who_waits_how_long_it_has_been) {
  ProcessBoard board(std::make_shared<SharedRegion>(ProcessBoard::bytes_of(2)), 0, 2);
  const auto give_up = [](std::int64_t waited_ms) {
    if (waited_ms >= 3) throw std::runtime_error("enough");
  };
  EXPECT_THROW(board.exchange("a call", {}, give_up), std::runtime_error);
}

TEST(SharedRegion, Is_opened_by_its_place_as_long_as_its_maker_lives) {
  std::string place;
  {
    const SharedRegion made(100);
    place = made.place();
    made.data()[99] = std::byte{7};
    Forked other([&] {
      const SharedRegion opened(place, 100);
      MUST(opened.data()[99] == std::byte{7});
      opened.data()[0] = std::byte{8};
      return 0;
    });
    EXPECT_EQ(0, other.exit_code());
    EXPECT_EQ(std::byte{8}, made.data()[0]);
    EXPECT_THROW(SharedRegion(place, 101), RuntimeFault);
  }
  EXPECT_THROW(SharedRegion(place, 100), RuntimeFault);
  try {
    const SharedRegion none("/proc/self/fd/1000000", 1);
  } catch (const RuntimeFault& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("/proc/self/fd/1000000: No such file"));
  }
}

}  // namespace
}  // namespace zeroproof
