#include "engine/runtime/address_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

void wait_for_ever(std::int64_t) {}

template <class Program>
void on_all_ranks(Program program) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back([=] { program(rank); });
}

TEST(AddressBoard, Tells_every_rank_what_all_have_told_in_every_round) {
  AddressBoard board(kRanks);
  const std::vector<int> memory(kRanks * 100);
  on_all_ranks([&](int rank) {
    for (int round = 0; round < 100; ++round) {
      const auto place = [&](int of) {
        return &memory[static_cast<std::size_t>(round * kRanks + of)];
      };
      const auto all = board.exchange(rank, "a call", {place(rank)}, wait_for_ever);
      for (int of = 0; of < kRanks; ++of)
        EXPECT_EQ(place(of), all.at(static_cast<std::size_t>(of)).front()) << round;
      board.finish(rank);
    }
  });
}

TEST(AddressBoard, Names_both_calls_on_every_rank_where_two_differ) {
  AddressBoard board(kRanks);
  on_all_ranks([&](int rank) {
    std::string text;
    try {
      board.exchange(rank, rank == 2 ? "reduce" : "gather", {}, wait_for_ever);
    } catch (const RuntimeFault& fault) {
      text = fault.what();
    }
    EXPECT_THAT(text, HasSubstr("rank 0 gather, rank 2 reduce"));
  });
}

// Rank 0 would free its memory; rank 1 still reads it.
TEST(AddressBoard, Waits_until_the_others_have_finished_what_this_rank_has) {
  AddressBoard board(2);
  std::atomic<bool> may_read = false;
  std::atomic<bool> is_read = false;
  std::jthread other([&] {
    board.exchange(1, "a call", {}, wait_for_ever);
    may_read.wait(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_read = true;
    board.finish(1);
  });
  board.exchange(0, "a call", {}, wait_for_ever);
  board.wait_for_others(0, wait_for_ever);  // this rank has not finished an exchange
  EXPECT_FALSE(is_read);
  may_read = true;
  may_read.notify_one();
  board.finish(0);
  board.wait_for_others(0, wait_for_ever);
  EXPECT_TRUE(is_read);
}

TEST(AddressBoard, Tells_who_waits_how_long_it_has_been_and_may_be_left) {
  AddressBoard board(2);
  const auto give_up = [](std::int64_t waited_ms) {
    if (waited_ms >= 3) throw std::runtime_error("enough");
  };
  EXPECT_THROW(board.exchange(0, "a call", {}, give_up), std::runtime_error);
  board.finish(0);
  EXPECT_THROW(board.wait_for_others(0, give_up), std::runtime_error);
}

}  // namespace
}  // namespace zeroproof
