// The names that --runtime takes.
#include "engine/runtime/registry.h"

#include <gtest/gtest.h>

namespace zeroproof {
namespace {

TEST(RuntimeRegistry, Finds_each_runtime_by_its_name) {
  for (const RuntimeInfo& info : runtimes()) EXPECT_EQ(&info, find_runtime(info.name));
  EXPECT_EQ(nullptr, find_runtime("tpu"));
}

TEST(RuntimeRegistry, Gives_a_reason_for_exactly_those_that_are_missing) {
  for (const RuntimeInfo& info : runtimes())
    EXPECT_NE(info.is_available, !info.reason.empty()) << info.name;
  EXPECT_TRUE(find_runtime("host")->is_available);
}

}  // namespace
}  // namespace zeroproof
