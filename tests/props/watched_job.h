#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "props/replay/diagnose.h"
#include "props/watch/watch.h"
#include "sim/trace/byte_source.h"
#include "tests/scratch_path.h"

namespace zeroproof {

// A file of which a test shows more and more.
class ShownBytes final : public GrowingBytes {
 public:
  explicit ShownBytes(const std::string& bytes) : bytes_(bytes) {}

  std::uint64_t identity() override { return bytes_.empty() ? 0 : 1; }
  std::uint64_t size() override { return bytes_.size(); }
  std::string read_at(std::uint64_t offset, std::size_t count) override {
    return offset >= bytes_.size() ? std::string() : bytes_.substr(offset, count);
  }

 private:
  const std::string& bytes_;
};

// The lines of a trace file, each with its end.
inline std::vector<std::string> lines_of_trace(const std::string& path) {
  std::string text;
  auto source = open_file_source(path);
  std::string piece(1 << 20, '\0');
  for (std::size_t got = 1; source && got > 0;) {
    got = (*source)->read(piece).value_or(0);
    text.append(piece, 0, got);
  }
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

// A job whose ranks write what their files hold, as a test lets them; the clock is the test's.
class WatchedJob {
 public:
  explicit WatchedJob(const std::vector<std::vector<std::string>>& ranks,
                      const WatchOptions& options = {})
      : watch_(options, [this](const WatchedRank& rank) { return snapshot(rank.path); }) {
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      Rank& rank = *ranks_.emplace_back(std::make_unique<Rank>());
      rank.lines = ranks[at];
      rank.path = scratch_path("watched-" + std::to_string(at) + ".jsonl");
      const auto open = [&rank](const std::string&) {
        return std::make_unique<ShownBytes>(rank.shown);
      };
      watch_.add(rank.path, RankStream(rank.path, nullptr, open));
    }
  }

  static WatchedJob of_files(const std::vector<std::string>& paths) {
    std::vector<std::vector<std::string>> ranks;
    for (const std::string& path : paths) ranks.push_back(lines_of_trace(path));
    return WatchedJob(ranks);
  }

  std::size_t lines_max() const {
    std::size_t most = 0;
    for (const auto& rank : ranks_) most = std::max(most, rank->lines.size());
    return most;
  }

  // Shows the first `count` lines of one rank.
  void show(std::size_t rank, std::size_t count) {
    Rank& one = *ranks_[rank];
    for (; one.count < std::min(count, one.lines.size()); ++one.count)
      one.shown += one.lines[one.count];
  }
  void show_all(std::size_t count) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) show(rank, count);
  }

  std::vector<WatchNews> tick(std::int64_t now_ns) { return watch_.tick(now_ns); }
  Watch& watch() { return watch_; }
  std::size_t size() const { return ranks_.size(); }

 private:
  struct Rank {
    std::vector<std::string> lines;
    std::string path;
    std::string shown;
    std::size_t count = 0;
  };

  std::string snapshot(const std::string& path) const {
    for (const auto& rank : ranks_)
      if (rank->path == path) std::ofstream(path, std::ios::binary) << rank->shown;
    return path;
  }

  std::vector<std::unique_ptr<Rank>> ranks_;
  Watch watch_;
};

}  // namespace zeroproof
