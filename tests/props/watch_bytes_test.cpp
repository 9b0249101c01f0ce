// What `zeroproof watch` reads: files and spools while they are written.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/trace/gzip.h"
#include "tests/props/watched_job.h"
#include "tests/read_file.h"

namespace zeroproof {
namespace {

std::vector<std::string> texts(const std::vector<NumberedLine>& lines) {
  std::vector<std::string> all;
  for (const NumberedLine& line : lines) all.push_back(line.text);
  return all;
}

std::string member(const std::string& text) {
  GzipCompressor gzip;
  std::string bytes;
  gzip.add(text, bytes);
  gzip.finish(bytes);
  return bytes;
}

TEST(FileTail, Gives_each_line_once_wherever_the_writing_stands) {
  const std::vector<std::string> expected = {"one", "two", "three", "four"};
  for (const std::string& whole :
       {std::string("one\ntwo\n\nthree\nfour\n"), member("one\ntwo\n") + member("three\nfour\n")}) {
    std::string shown;
    FileTail tail(std::make_unique<ShownBytes>(shown));
    std::vector<NumberedLine> lines;
    EXPECT_FALSE(tail.poll(lines));
    for (const char byte : whole) {
      shown += byte;
      EXPECT_TRUE(tail.poll(lines));
    }
    EXPECT_EQ(texts(lines), expected);
    EXPECT_EQ(lines.back().number, 3U);
    EXPECT_EQ(tail.restarts(), 0U);
  }
}

TEST(FileTail, A_last_line_without_its_newline_waits) {
  std::string shown = "one\ntw";
  FileTail tail(std::make_unique<ShownBytes>(shown));
  std::vector<NumberedLine> lines;
  tail.poll(lines);
  EXPECT_EQ(texts(lines), std::vector<std::string>{"one"});
  shown += "o\n";
  tail.poll(lines);
  EXPECT_EQ(texts(lines), (std::vector<std::string>{"one", "two"}));
}

// The guardian cuts the half of a member off that its process left, and writes it again.
TEST(FileTail, Begins_again_where_the_file_was_cut_back) {
  const std::string first = member("one\n");
  std::string shown = first + member("two\n").substr(0, 15);
  FileTail tail(std::make_unique<ShownBytes>(shown));
  std::vector<NumberedLine> lines;
  tail.poll(lines);
  shown = first;
  tail.poll(lines);
  shown = first + member("two and more\n");
  tail.poll(lines);
  EXPECT_EQ(tail.restarts(), 1U);
  EXPECT_EQ(texts(lines), (std::vector<std::string>{"one", "two", "one", "two and more"}));
}

std::vector<nlohmann::json> parsed(const std::vector<std::string>& lines) {
  std::vector<nlohmann::json> all;
  for (const std::string& line : lines) all.push_back(nlohmann::json::parse(line));
  return all;
}

// tests/data/watch: what the recorder itself puts into a spool, and the lines that it makes of it.
class Spools : public ::testing::Test {
 protected:
  static std::string data(const std::string& name) {
    return read_file(ZP_SOURCE_DIR "/tests/data/watch/" + name);
  }

  RankStream stream() {
    return RankStream("/x/trace/train__w2_r1.jsonl.gz",
                      std::make_unique<SpoolTail>(std::make_unique<ShownBytes>(spool_)),
                      [this](const std::string&) { return std::make_unique<ShownBytes>(file_); });
  }

  static std::vector<std::string> expected() {
    std::vector<std::string> lines;
    const std::string text = data("lines.jsonl");
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      lines.push_back(text.substr(at, text.find('\n', at) - at));
    return lines;
  }

  std::string spool_;
  std::string file_;
};

TEST_F(Spools, Are_read_as_the_recorder_writes_them) {
  RankStream stream = this->stream();
  std::vector<std::string> lines;
  const std::vector<std::string> all = expected();
  spool_ = data("first.spool");
  auto news = stream.poll();
  EXPECT_FALSE(news.has_restarted);
  lines = news.lines;
  EXPECT_EQ(lines.size(), all.size() - 2);
  // A flush: the file has what the spool had, which is emptied.
  for (std::size_t at = 0; at + 2 < all.size(); ++at) file_ += all[at] + "\n";
  spool_ = data("second.spool");
  news = stream.poll();
  EXPECT_FALSE(news.has_restarted);
  lines.insert(lines.end(), news.lines.begin(), news.lines.end());
  EXPECT_EQ(parsed(lines), parsed(all));
  // The end: everything is in the file, and the spool goes.
  file_ += all[all.size() - 2] + "\n" + all.back() + "\n" + R"({"rec":"end"})" + "\n";
  spool_.clear();
  EXPECT_EQ(stream.poll().lines, std::vector<std::string>{R"({"rec":"end"})"});
  EXPECT_TRUE(stream.is_owner_done());
}

// What was not read before the flush comes from the file.
TEST_F(Spools, Leave_what_was_missed_in_the_file) {
  RankStream stream = this->stream();
  const std::vector<std::string> all = expected();
  for (std::size_t at = 0; at + 2 < all.size(); ++at) file_ += all[at] + "\n";
  spool_ = data("second.spool");
  EXPECT_EQ(parsed(stream.poll().lines), parsed(all));
}

// Whatever a spool holds, reading it ends.
TEST_F(Spools, That_are_damaged_are_left) {
  const std::string good = data("first.spool");
  for (std::size_t at = 0; at < 1200; ++at) {
    spool_ = good;
    spool_[at] = static_cast<char>(spool_[at] ^ (1 << (at % 8)));
    RankStream stream = this->stream();
    for (int look = 0; look < 2; ++look) (void)stream.poll();
  }
  spool_ = good;
  RankStream stream = this->stream();
  EXPECT_EQ(stream.poll().lines.size(), expected().size() - 2);
}

}  // namespace
}  // namespace zeroproof
