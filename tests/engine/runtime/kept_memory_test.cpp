#include "engine/runtime/kept_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace zeroproof {
namespace {

constexpr std::size_t kGrain = 512;

// Memory that is numbers, of a device with so much room and one other queue.
class CountingPool final : public KeptMemory::Pool {
 public:
  void* take(std::size_t bytes) override {
    if (live_ + bytes > room) return nullptr;
    ++takes;
    live_ += bytes;
    next_ += kGrain;
    void* const data = reinterpret_cast<void*>(next_);  // NOLINT: is never read
    sizes_[data] = bytes;
    return data;
  }
  void give_back(void* data, const KeptMemory::Uses& pending_uses) override {
    gone.emplace_back(data, pending_uses.size());
    live_ -= sizes_.at(data);
    sizes_.erase(data);
  }
  bool is_over(const KeptMemory::Use& use) override { return use.marks < reached; }

  std::size_t live() const { return live_; }

  std::size_t room = std::size_t{1} << 40;
  int takes = 0;
  std::int64_t reached = 0;
  std::vector<std::pair<void*, std::size_t>> gone;  // and after how many uses

 private:
  std::size_t live_ = 0;
  std::uintptr_t next_ = 0;
  std::map<void*, std::size_t> sizes_;
};

class KeptMemoryTest : public ::testing::Test {
 protected:
  CountingPool pool_;
  KeptMemory memory_{pool_};
};

TEST_F(KeptMemoryTest, Gives_the_newest_of_a_size_again_without_the_pool) {
  void* const first = memory_.take(1000);
  void* const second = memory_.take(1024);
  void* const other = memory_.take(1025);
  memory_.give_back(first, 1000, {});
  memory_.give_back(other, 1025, {});
  memory_.give_back(second, 1024, {});
  EXPECT_EQ(second, memory_.take(900));
  EXPECT_EQ(first, memory_.take(1024));
  EXPECT_EQ(3, pool_.takes);
  EXPECT_TRUE(pool_.gone.empty());
}

TEST_F(KeptMemoryTest, Gives_what_another_queue_uses_again_when_that_is_over) {
  void* const late = memory_.take(kGrain);
  void* const big = memory_.take(8 * kGrain);
  memory_.give_back(big, 8 * kGrain, {});
  memory_.give_back(late, kGrain, {{.queue = 1, .marks = 3}});
  void* const fresh = memory_.take(kGrain);
  EXPECT_NE(late, fresh);
  pool_.reached = 4;
  EXPECT_EQ(late, memory_.take(kGrain));
}

// The oldest goes first; a block that another queue uses goes last, after that use.
TEST_F(KeptMemoryTest, Drops_the_oldest_before_more_is_held_than_ever_was_used) {
  std::array<void*, 4> blocks{};
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = memory_.take((i + 1) * kGrain);
  memory_.give_back(blocks[3], 4 * kGrain, {{.queue = 2, .marks = 9}});
  memory_.give_back(blocks[1], 2 * kGrain, {});
  memory_.give_back(blocks[0], kGrain, {});
  memory_.take(3 * kGrain);
  ASSERT_EQ((std::vector<std::pair<void*, std::size_t>>{{blocks[1], 0}, {blocks[0], 0}}),
            pool_.gone);
  memory_.take(4 * kGrain);
  EXPECT_EQ((std::pair<void*, std::size_t>{blocks[3], 1}), pool_.gone.back());
}

TEST_F(KeptMemoryTest, Never_holds_more_than_was_used_at_once) {
  std::mt19937 random(7);
  std::vector<std::pair<void*, std::size_t>> used;
  std::size_t now = 0;
  std::size_t most = 0;
  for (int step = 0; step < 5000; ++step) {
    if (!used.empty() && random() % 2 == 0) {
      std::swap(used[random() % used.size()], used.back());
      const auto [data, bytes] = used.back();
      used.pop_back();
      now -= bytes;
      memory_.give_back(data, bytes,
                        random() % 3 == 0 ? KeptMemory::Uses{{1, step}} : KeptMemory::Uses{});
    } else {
      const std::size_t bytes = (1 + random() % 9) * kGrain;
      used.emplace_back(memory_.take(bytes), bytes);
      now += bytes;
    }
    if (step % 50 == 0) pool_.reached = step;
    most = std::max(most, now);
    ASSERT_LE(pool_.live(), most) << step;
    ASSERT_GE(pool_.live(), now) << step;
  }
  EXPECT_LT(pool_.takes, 1500) << "of 2,500 that were asked for";
  for (const auto& [data, bytes] : used) memory_.give_back(data, bytes, {});
  memory_.clear();
  EXPECT_EQ(0U, pool_.live());
}

TEST_F(KeptMemoryTest, Does_not_count_what_its_user_frees) {
  void* const kept = memory_.take(2 * kGrain);
  memory_.take(2 * kGrain);
  memory_.forget(2 * kGrain);
  memory_.give_back(kept, 2 * kGrain, {});
  memory_.take(kGrain);
  EXPECT_TRUE(pool_.gone.empty());
}

TEST_F(KeptMemoryTest, Gives_up_what_it_keeps_where_the_pool_has_no_room) {
  pool_.room = 4 * kGrain;
  void* const kept = memory_.take(2 * kGrain);
  memory_.take(2 * kGrain);
  memory_.forget(2 * kGrain);  // somebody still has it
  memory_.give_back(kept, 2 * kGrain, {});
  EXPECT_NE(nullptr, memory_.take(kGrain));
  EXPECT_EQ((std::vector<std::pair<void*, std::size_t>>{{kept, 0}}), pool_.gone);
  EXPECT_EQ(nullptr, memory_.take(2 * kGrain));
}

TEST_F(KeptMemoryTest, Forgets_the_most_that_was_used_when_it_is_cleared) {
  void* const block = memory_.take(8 * kGrain);
  memory_.give_back(block, 8 * kGrain, {});
  memory_.clear();
  EXPECT_EQ(0U, pool_.live());
  void* const one = memory_.take(kGrain);
  memory_.give_back(one, kGrain, {});
  memory_.take(2 * kGrain);
  EXPECT_EQ(2 * kGrain, pool_.live());
}

}  // namespace
}  // namespace zeroproof
