#include "tests/props/property_script.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace zeroproof {
namespace {

TEST(PropertyScript, Refuses_an_unknown_word) {
  EXPECT_THROW(PropertyScript("nonsense"), std::invalid_argument);
  EXPECT_THROW(PropertyScript("forget[d1>d0]"), std::invalid_argument);
}

TEST(PropertyScript, Nests_graph_tasks) {
  const PropertyScript script("g+7 g+8<7 w:p g-8 g-7!ValueError");
  ASSERT_EQ(script.events().size(), 6U);
  EXPECT_EQ(script.events()[2].graph_task, GraphTaskId{8});
  EXPECT_EQ(script.events()[1].parent_call, 7);
  EXPECT_EQ(script.names().text(script.events()[5].exception), "ValueError");
}

}  // namespace
}  // namespace zeroproof
