// What a group remembers of its collectives does not grow with the length of a training.
#include "engine/runtime/host/issued_collectives.h"

#include <gtest/gtest.h>

#include "model/check.h"

namespace zeroproof::host {
namespace {

TEST(IssuedCollectives, Forget_what_has_completed) {
  IssuedCollectives issued;
  constexpr std::int64_t kSteps = 100'000;
  constexpr std::int64_t kBehind = 256;  // events that a GPU has not come to yet
  for (std::int64_t step = 0; step < kSteps; ++step) {
    issued.forget([step](StreamEvent of) { return of.value < step - kBehind; });
    const std::int64_t number = issued.add({.op = CollectiveOp::barrier});
    EXPECT_EQ(step, number);
    issued.complete(number, StreamEvent{step});
    ASSERT_GE(kBehind + 2, issued.kept());
  }
  EXPECT_EQ(kSteps, issued.size());
  EXPECT_FALSE(issued.find(0));
  ASSERT_TRUE(issued.find(kSteps - 1));
  EXPECT_EQ(kSteps - 1, issued.find(kSteps - 1)->completion.value);
  EXPECT_THROW(issued.find(kSteps), CheckFailed);
}

TEST(IssuedCollectives, Keep_those_of_a_batch_that_is_not_queued) {
  IssuedCollectives issued;
  issued.add({});
  issued.complete(0, StreamEvent{7});
  const std::int64_t batch = issued.add({});
  issued.add({});
  issued.forget([](StreamEvent) { return true; });
  EXPECT_EQ(1, issued.oldest()->first);
  EXPECT_EQ(2, issued.kept());
  issued.complete(batch, StreamEvent{9});
  EXPECT_EQ(9, issued.find(1)->completion.value);
  EXPECT_EQ(9, issued.find(2)->completion.value);
}

}  // namespace
}  // namespace zeroproof::host
