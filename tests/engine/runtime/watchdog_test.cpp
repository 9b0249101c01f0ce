// Waits that do not end by themselves, work that does not end at all, and room for copies.
#include "engine/runtime/watchdog.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <map>
#include <vector>

#include "engine/runtime/bounded_work.h"
#include "engine/runtime/staging_ring.h"

namespace zeroproof {
namespace {

using Ms = std::chrono::milliseconds;

TEST(Watchdog, Ends_a_wait_that_nothing_else_ends) {
  std::atomic<int> alarms = 0;
  std::string told;
  Watchdog watchdog(Ms(60), [&](const std::string& what, Ms age) {
    EXPECT_LE(Ms(60), age);
    told = what;
    ++alarms;
    alarms.notify_all();
  });
  for (int wait = 1; wait <= 2; ++wait) {
    const Watchdog::Wait outer(&watchdog, "a copy");
    const Watchdog::Wait inner(&watchdog, "another");
    alarms.wait(wait - 1);  // as a driver would: forever, but for the alarm
    EXPECT_EQ(wait, alarms);
    EXPECT_EQ("a copy", told);
  }
  const Watchdog::Wait nobody(nullptr, "unwatched");
}

TEST(Watchdog, Leaves_many_short_waits_and_other_work_alone) {
  std::atomic<int> alarms = 0;
  Watchdog watchdog(Ms(1'000), [&](const std::string&, Ms) { ++alarms; });
  for (int wait = 0; wait < 120; ++wait) {
    const Watchdog::Wait short_wait(&watchdog, "a copy");
    std::this_thread::sleep_for(Ms(10));
  }
  std::this_thread::sleep_for(Ms(1'200));
  EXPECT_EQ(0, alarms);
}

TEST(BoundedWork, Leaves_behind_what_does_not_end) {
  auto may_end = std::make_shared<std::atomic<bool>>(false);
  auto ended = std::make_shared<std::atomic<int>>(0);
  const auto quick = [ended] { ++*ended; };
  EXPECT_TRUE(run_within({quick, quick, quick}, Ms(60'000)));
  EXPECT_EQ(3, *ended);
  EXPECT_FALSE(run_within({quick,
                           [may_end, ended] {
                             may_end->wait(false);
                             ++*ended;
                             ended->notify_all();
                           }},
                          Ms(100)));
  *may_end = true;
  may_end->notify_all();
  for (int now = *ended; now < 5; now = *ended) ended->wait(now);
  EXPECT_TRUE(run_within({}, Ms(0)));
}

// Copies are over in order, some time after they were queued.
RC_GTEST_PROP(StagingRing, Gives_no_part_whose_copy_is_not_over, ()) {
  constexpr std::size_t kRing = 100;
  StagingRing ring(kRing);
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> under_way;  // by event
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, kRing + 1));
  std::int64_t event = 0;
  for (const std::size_t size : sizes) {
    const std::size_t begin = ring.take(size, [&](StreamEvent of) {
      RC_ASSERT(under_way.contains(of.value));
      RC_ASSERT(of.value == under_way.begin()->first);
      under_way.erase(of.value);
    });
    RC_ASSERT(begin + size <= kRing);
    for (const auto& [of, part] : under_way)
      RC_ASSERT(part.second <= begin || begin + size <= part.first);
    under_way[event] = {begin, begin + size};
    ring.note_copy(StreamEvent{event++});
  }
}

}  // namespace
}  // namespace zeroproof
