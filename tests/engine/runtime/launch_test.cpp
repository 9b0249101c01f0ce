// What launchers say of a process: the variables that some set when they were asked, and wrong
// ones.
#include "zeroproof/engine/runtime/process/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using Json = nlohmann::json;

template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const Launch& launch) {
  return {launch.launcher,
          launch.rank,
          launch.size,
          json_of(launch.local_rank),
          json_of(launch.local_size),
          launch.run_id,
          launch.master_address,
          json_of(launch.port)};
}

TEST(Launch, Is_what_the_variables_of_a_launcher_say) {
  std::ifstream file(ZP_SOURCE_DIR "/tests/engine/runtime/launch_cases.json");
  const Json cases = Json::parse(file);
  ASSERT_GT(cases.size(), 20U);
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"]);
    const auto launch = read_launch(one["environment"].get<Environment>());
    if (one.contains("error")) {
      ASSERT_FALSE(launch);
      EXPECT_EQ(ErrorCode::usage, launch.error().code);
      EXPECT_THAT(launch.error().text, ::testing::HasSubstr(one["error"].get<std::string>()));
      continue;
    }
    ASSERT_TRUE(launch) << launch.error().text;
    EXPECT_EQ(one["launch"], *launch ? json_of(**launch) : Json());
  }
}

}  // namespace
}  // namespace zeroproof
