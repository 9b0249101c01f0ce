#include "engine/runtime/stream_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace zeroproof {
namespace {

constexpr std::size_t kGrain = StreamHeap::kAlignment;

class StreamHeapTest : public ::testing::Test {
 protected:
  // Memory that is never read.
  static std::byte* place(std::size_t grain) {
    return reinterpret_cast<std::byte*>((std::size_t{1} << 40) + grain * kGrain);  // NOLINT
  }
  void* take(std::size_t bytes) {
    return heap_.take(bytes, [this](StreamEvent event) { awaited_.push_back(event.value); });
  }

  StreamHeap heap_;
  std::vector<std::int64_t> awaited_;
};

TEST_F(StreamHeapTest, Gives_the_smallest_block_that_is_large_enough) {
  heap_.add(place(0), 8 * kGrain);
  heap_.add(place(100), 3 * kGrain);
  EXPECT_EQ(place(100), take(2 * kGrain + 1));
  EXPECT_EQ(place(0), take(kGrain));
  EXPECT_EQ(place(1), take(7 * kGrain));
  EXPECT_EQ(nullptr, take(1));
  EXPECT_EQ(11 * kGrain, heap_.most_used_bytes());
}

// Two segments may lie side by side in memory.
TEST_F(StreamHeapTest, Joins_free_neighbours_of_one_segment_alone) {
  heap_.add(place(0), 4 * kGrain);
  heap_.add(place(4), 4 * kGrain);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(take(kGrain));
  for (const int i : {2, 0, 3, 1, 5, 6, 4, 7})
    heap_.give_back(blocks[static_cast<std::size_t>(i)], {});
  EXPECT_EQ(nullptr, take(5 * kGrain));
  EXPECT_NE(nullptr, take(4 * kGrain));
  EXPECT_NE(nullptr, take(4 * kGrain));
}

TEST_F(StreamHeapTest, Waits_for_other_streams_only_where_there_is_no_other_block) {
  heap_.add(place(0), 3 * kGrain);
  void* const first = take(kGrain);
  void* const second = take(kGrain);
  heap_.give_back(first, {StreamEvent{4}, StreamEvent{5}});
  heap_.give_back(second, {StreamEvent{6}});
  EXPECT_EQ(place(2), take(kGrain));
  EXPECT_TRUE(awaited_.empty());
  EXPECT_EQ(first, take(kGrain));  // the oldest
  EXPECT_EQ((std::vector<std::int64_t>{4, 5}), awaited_);
  EXPECT_EQ(second, take(kGrain));
  EXPECT_EQ((std::vector<std::int64_t>{4, 5, 6}), awaited_);
  EXPECT_EQ(nullptr, take(kGrain));
}

// No two blocks share a byte, and what came back is given again whole.
TEST_F(StreamHeapTest, Keeps_blocks_apart) {
  constexpr std::size_t kGrains = 64;
  std::mt19937 random(7);
  heap_.add(place(0), kGrains * kGrain);
  std::vector<std::pair<std::byte*, std::size_t>> used;
  std::vector<int> owners(kGrains, 0);
  const auto mark = [&](const std::pair<std::byte*, std::size_t>& of, int change, int wanted) {
    const auto begin = static_cast<std::size_t>(of.first - place(0)) / kGrain;
    for (std::size_t i = begin; i < begin + of.second; ++i) {
      owners.at(i) += change;
      EXPECT_EQ(wanted, owners.at(i)) << i;
    }
  };
  for (int step = 0; step < 3000; ++step) {
    if (!used.empty() && random() % 2 == 0) {
      std::swap(used[random() % used.size()], used.back());
      mark(used.back(), -1, 0);
      heap_.give_back(used.back().first,
                      step % 3 == 0 ? std::vector{StreamEvent{step}} : std::vector<StreamEvent>{});
      used.pop_back();
    } else {
      const std::size_t grains = 1 + random() % 9;
      void* const data = take(grains * kGrain);
      if (data == nullptr) continue;
      used.emplace_back(static_cast<std::byte*>(data), grains);
      mark(used.back(), 1, 1);
    }
  }
  for (const auto& [data, grains] : used) heap_.give_back(data, {});
  EXPECT_EQ(place(0), take(kGrains * kGrain));
}

}  // namespace
}  // namespace zeroproof
