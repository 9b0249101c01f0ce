#include "sim/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "model/order_count.h"
#include "sim/fingerprint.h"
#include "tests/scratch_path.h"

namespace zeroproof {
namespace {

Schedule arbitrary_schedule() {
  Schedule schedule;
  schedule.scenario = *rc::gen::arbitrary<std::string>();
  schedule.settings = *rc::gen::arbitrary<std::map<std::string, std::string>>();
  schedule.seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto runs = *rc::gen::arbitrary<std::vector<std::pair<std::uint8_t, std::uint32_t>>>();
  for (const auto& [length, choice] : runs) {
    schedule.choices.insert(schedule.choices.end(), length % 5, choice);
  }
  return schedule;
}

RC_GTEST_PROP(Schedule, Survives_its_text_form, ()) {
  const Schedule schedule = arbitrary_schedule();
  const std::string text = schedule_text(schedule);
  for (const char c : text) {
    RC_ASSERT(std::isgraph(static_cast<unsigned char>(c)) &&
              !std::strchr("'\"\\$&|;<>()*?`!#~", c));
  }
  RC_ASSERT(is_schedule_text(text));
  const Result<Schedule> again = parse_schedule(text, "here");
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == schedule);
}

RC_GTEST_PROP(Schedule, Survives_its_file_form, ()) {
  const Schedule schedule = arbitrary_schedule();
  const std::string path = scratch_path("schedule.zps");
  RC_ASSERT(write_schedule_file(schedule, path).has_value());
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) RC_ASSERT(line.size() <= 100u);
  const Result<Schedule> again = read_schedule_file(path);
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == schedule);
  std::filesystem::remove(path);
}

RC_GTEST_PROP(Schedule, Notices_any_changed_or_missing_character, ()) {
  std::string text = schedule_text(arbitrary_schedule());
  const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
  if (*rc::gen::arbitrary<bool>()) {
    text.resize(place);
  } else {
    const char other = *rc::gen::elementOf(std::string("abcxyz019,:=_%"));
    RC_PRE(text[place] != other);
    text[place] = other;
  }
  RC_ASSERT_FALSE(parse_schedule(text, "here").has_value());
}

TEST(Schedule, Is_short_and_readable) {
  const Schedule schedule{"S2", {{"N", "4"}, {"policy", "pr7780"}}, 7, {0, 0, 0, 0, 1, 0, 2, 2}};
  EXPECT_EQ(schedule_text(schedule), "zps1:S2:N=4,policy=pr7780:7:4x0,1,0,2x2:b77561c0");
}

TEST(Schedule, Refuses_malformed_text_in_one_clear_line) {
  const auto checked = [](std::string body) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x",
                  static_cast<unsigned>(fingerprint_of(body).low & 0xffffffff));
    return body + digits;
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "it is empty"},
      {"zps9:S2::1::00000000", "it starts with 'zps9'; this version reads 'zps1:'"},
      {"zps1:S2::1:0", "it has 5 fields instead of 6 (was the end lost in copying?)"},
      {"zps1:S2::1:0:12345678", "checksum '12345678' does not match the text"},
      {checked("zps1:S%2::1:0:"), "scenario 'S%252' has a bad %XX"},
      {checked("zps1:S2::-1:0:"), "seed '-1' is not a 64-bit number"},
      {checked("zps1:S2:N:1:0:"), "setting 'N' has no '='"},
      {checked("zps1:S2:N=1,N=2:1:0:"), "setting 'N' is given twice"},
      {checked("zps1:S2::1:0,,1:"), "choice '' is neither N nor COUNTxN"},
      {checked("zps1:S2::1:0x1:"), "choice '0x1' is neither N nor COUNTxN"},
      {checked("zps1:S2::1:1x4294967296:"), "choice '1x4294967296' is neither N nor COUNTxN"},
      {checked("zps1:S2::1:9999999999x0:"), "it has more than 16777216 choices"},
  };
  for (const auto& [text, problem] : cases) {
    const Result<Schedule> schedule = parse_schedule(text, "chat");
    ASSERT_FALSE(schedule) << text;
    EXPECT_EQ(schedule.error().code, ErrorCode::unreadable);
    EXPECT_EQ(schedule.error().text.find("chat: not a schedule: " + problem), 0u)
        << schedule.error().text;
  }
}

TEST(Schedule, Names_the_file_it_cannot_read_or_write) {
  EXPECT_EQ(read_schedule_file("/nowhere/x.zps").error().text,
            "/nowhere/x.zps: cannot be read: No such file or directory");
  EXPECT_EQ(read_schedule_file("/tmp").error().text, "/tmp: cannot be read: it is a directory");
  const auto written = write_schedule_file({}, "/nowhere/x.zps");
  EXPECT_EQ(written.error().text,
            "/nowhere/x.zps: cannot be written: No such file or directory; choose another place");
}

TEST(Schedule, Leaves_no_temporary_file_when_the_target_cannot_be_replaced) {
  const std::filesystem::path folder = scratch_path("schedules");
  std::filesystem::create_directories(folder / "x.zps");
  EXPECT_FALSE(write_schedule_file({}, folder / "x.zps"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(Fingerprint, Is_the_published_XXH3_128_of_the_bytes) {
  EXPECT_EQ(fingerprint_of(""), (Fingerprint{0x6001c324468d497f, 0x99aa06d3014798d8}));
}

TEST(Fingerprint, Keeps_values_apart) {
  EXPECT_NE(StateBytes().add("a").add("bc").bytes(), StateBytes().add("ab").add("c").bytes());
  EXPECT_NE(StateBytes().add(1).add(256).bytes(), StateBytes().add(256).add(1).bytes());
  const auto append = [](std::string& bytes) { bytes += "bc"; };
  EXPECT_EQ(StateBytes().add("a").add_from(append).bytes(),
            StateBytes().add("a").add("bc").bytes());
}

TEST(OrderCount, Is_exact_up_to_128_bits_and_says_when_it_is_not) {
  OrderCount factorial(1);
  for (std::uint64_t n = 2; n <= 34; ++n) factorial *= OrderCount(n);
  EXPECT_EQ(factorial.text(), "295232799039604140847618609643520000000");
  EXPECT_FALSE(factorial.has_overflowed());
  EXPECT_TRUE((factorial * OrderCount(35)).has_overflowed());
  EXPECT_EQ((factorial + factorial).text(), "more than 340282366920938463463374607431768211455");
  for (const std::uint64_t n : {0, 1}) {
    EXPECT_EQ(OrderCount::overflowed() * OrderCount(n), OrderCount::overflowed());
    EXPECT_EQ(OrderCount(n) * OrderCount::overflowed(), OrderCount::overflowed());
    EXPECT_EQ(OrderCount(n) + OrderCount::overflowed(), OrderCount::overflowed());
  }
}

}  // namespace
}  // namespace zeroproof
