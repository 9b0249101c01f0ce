#include "props/report/folded_text.h"

#include <gtest/gtest.h>

#include <tuple>

namespace zeroproof {
namespace {

constexpr std::size_t kColumns = 40;

TEST(FoldedText, Breaks_at_blanks_and_goes_on_below_the_last_cell) {
  const std::tuple<std::string, std::string> cases[] = {
      {"short\n", "short\n"},
      {"without a line end", "without a line end\n"},
      {"  one thing after another until there is no room\n",
       "  one thing after another until there is\n    no room\n"},
      {"  id  a text that is longer than the columns of it\n",
       "  id  a text that is longer than the\n      columns of it\n"},
      // A last cell without room goes on at the left.
      {"ok   a_long_name_of_a_file.jsonl  24 collectives, 6 steps\n",
       "ok   a_long_name_of_a_file.jsonl  24\n  collectives, 6 steps\n"},
      {"a  b  c  a table of four cells stays as it is written\n",
       "a  b  c  a table of four cells stays as it is written\n"},
      {"reproduce: zeroproof replay some/folder/with/a/trace.jsonl.gz\n",
       "reproduce: zeroproof replay some/folder/with/a/trace.jsonl.gz\n"}};
  for (const auto& [text, folded] : cases) EXPECT_EQ(folded, folded_text(text, kColumns));
}

TEST(FoldedText, Counts_no_column_for_colour) {
  EXPECT_EQ("\x1b[32mok        \x1b[0m  a/file.jsonl  24\n  collectives, 6 steps\n",
            folded_text("\x1b[32mok        \x1b[0m  a/file.jsonl  24 collectives, 6 steps\n", 28));
}

}  // namespace
}  // namespace zeroproof
