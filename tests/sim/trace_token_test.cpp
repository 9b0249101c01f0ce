#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "sim/trace/diff.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/order_token.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

std::string bundled_text(const std::string& name) {
  return ZP_SOURCE_DIR "/tests/traces/" + name;
}

std::string token_or_dash(const HookEvent& event, const NameTable& names, TokenDetail detail) {
  std::string token;
  return append_order_token(event, names, detail, token) ? token : "-";
}

const HookEvent* next_event(TraceReader& reader) {
  while (true) {
    const auto record = reader.next();
    if (!record || *record == nullptr) return nullptr;
    if (const HookEvent* event = (*record)->event()) return event;
  }
}

// order_tokens.txt.gz was written by the Python implementation of the format: "# trace", then one
// line an event, the token of either detail or "-".
TEST(OrderToken, Equals_the_reference_on_every_event_of_the_bundled_traces) {
  auto source = open_file_source(bundled_text("order_tokens.txt.gz"));
  ASSERT_TRUE(source) << source.error();
  LineReader lines(std::move(*source), 1 << 20);
  NameTable names;
  std::optional<TraceReader> reader;
  int events = 0;
  while (true) {
    const auto line = lines.next();
    ASSERT_TRUE(line) << line.error();
    if (!*line) break;
    const std::string text((*line)->text);
    if (text.starts_with("# ")) {
      if (reader) {
        EXPECT_EQ(next_event(*reader), nullptr) << reader->path();
      }
      auto opened = TraceReader::open(bundled_text(text.substr(2)), names);
      ASSERT_TRUE(opened) << opened.error().text;
      reader.emplace(std::move(*opened));
      continue;
    }
    const HookEvent* event = next_event(*reader);
    ASSERT_NE(event, nullptr) << reader->path();
    ASSERT_EQ(token_or_dash(*event, names, TokenDetail::order) + "\t" +
                  token_or_dash(*event, names, TokenDetail::engine),
              text)
        << reader->path() << " lc " << event->lc;
    ++events;
  }
  EXPECT_GT(events, 3000);
}

const std::string kTokenHeader =
    R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":0,"world":1,)"
    R"("clock":{"unit":"ns","mono0":1,"unix0":2}})"
    "\n";

std::string marks(const std::vector<std::string>& labels) {
  std::string text = kTokenHeader;
  int lc = 0;
  for (const std::string& label : labels) {
    lc += 10;
    text += R"({"rec":"ev","lc":)" + std::to_string(lc) +
            R"(,"t":5,"r":0,"th":0,"k":"mark","gt":-1,"d":0,"label":")" + label + "\"}\n";
  }
  return text + R"({"rec":"end","events":0,"records":0})";
}

TraceComparison compare(const std::string& left, const std::string& right,
                        const TraceDiffOptions& options = {}) {
  NameTable names;
  auto a = TraceReader::from_bytes(left, "left", names);
  auto b = TraceReader::from_bytes(right, "right", names);
  auto out = diff_traces(*a, names, *b, names, options);
  EXPECT_TRUE(out) << out.error().text;
  return *out;
}

TEST(TraceDiff, Finds_no_difference_between_a_trace_and_itself) {
  const std::string path = bundled_text("deepspeed-edaa7221-cuda/mlp__z3_fp32_w2_r0.jsonl.gz");
  NameTable names;
  auto a = TraceReader::open(path, names);
  auto b = TraceReader::open(path, names);
  const auto out = diff_traces(*a, names, *b, names, {.detail = TokenDetail::engine, .skip = {}});
  ASSERT_TRUE(out);
  EXPECT_FALSE(out->difference);
  EXPECT_GT(out->equal_tokens, 300U);
}

TEST(TraceDiff, Names_the_first_difference_with_its_place_on_both_sides) {
  const auto out = compare(marks({"a", "b", "c", "d", "e", "f"}), marks({"a", "b", "c", "x", "e"}),
                           {.skip = {"m:b"}, .context_tokens = 1});
  ASSERT_TRUE(out.difference);
  EXPECT_EQ(out.difference->position, 2U);
  EXPECT_EQ(out.difference->left->token, "m:d");
  EXPECT_EQ(out.difference->right->token, "m:x");
  EXPECT_EQ(out.difference->left->lc, 40U);
  EXPECT_EQ(out.difference->left->line_number, 5U);
  EXPECT_THAT(out.difference->before, ::testing::ElementsAre("m:c"));
}

TEST(TraceDiff, Counts_the_end_of_one_side_as_a_difference) {
  const auto out = compare(marks({"a"}), marks({"a", "b"}));
  ASSERT_TRUE(out.difference);
  EXPECT_FALSE(out.difference->left);
  EXPECT_EQ(out.difference->right->token, "m:b");
}

TEST(TraceDiff, Ignores_skipped_prefixes) {
  const auto out = compare(marks({"a", "skip1"}), marks({"skip2", "a"}), {.skip = {"m:skip"}});
  EXPECT_FALSE(out.difference);
  EXPECT_EQ(out.equal_tokens, 1U);
}

TEST(TraceDiff, Reports_a_side_that_cannot_be_read) {
  NameTable names;
  auto a = TraceReader::from_bytes(kTokenHeader + "{\n", "left", names);
  const std::string good = marks({});
  auto b = TraceReader::from_bytes(good, "right", names);
  const auto out = diff_traces(*a, names, *b, names);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().text.rfind("left:2: malformed", 0), 0U) << out.error().text;
}

}  // namespace
}  // namespace zeroproof
