#include "zeroproof/model/result.h"

#include <gtest/gtest.h>

namespace zeroproof {
namespace {

TEST(Error, Is_one_line_whatever_it_quotes) {
  const Result<int> failed = fail(ErrorCode::usage, "a\nb\x1b[1m\x7f\tprécis");
  EXPECT_EQ("a?b?[1m??précis", failed.error().text);
  EXPECT_EQ(ErrorCode::usage, failed.error().code);
}

}  // namespace
}  // namespace zeroproof
