#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "props/replay/trace_replayer.h"
#include "sim/trace/record_order.h"
#include "sim/trace/record_parser.h"

namespace zeroproof {

// What one rank's lines say so far, by the levels of replay. Not thread-safe.
class RankFollower {
 public:
  // `options` must outlive it.
  explicit RankFollower(const ReplayOptions& options) : options_(options) {}

  // The next line; the header first.
  void add(std::string_view line);

  bool has_begun() const { return replayer_ != nullptr; }
  bool has_ended() const { return order_.has_end(); }  // its end record came
  const std::optional<Error>& fault() const { return fault_; }
  std::uint64_t events() const { return events_; }
  std::int32_t rank() const { return facts().rank; }
  const RunFacts& facts() const { return replayer_->facts(); }

  // Needs `has_begun`. `is_over`: the recording ended here, with or without its end record.
  TraceReplayer::SoFar so_far(const std::string& path, bool is_over) const;
  // Once, at the end.
  TraceReplayer::SoFar finish(const std::string& path);

 private:
  void take();
  void refuse(std::string_view what);

  const ReplayOptions& options_;
  std::unique_ptr<TraceReplayer> replayer_;
  std::unique_ptr<RecordParser> parser_;
  RecordOrder order_;
  Record record_;
  std::string line_;  // with the bytes that the parser may read after it
  std::optional<Error> fault_;
  std::uint64_t line_number_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace zeroproof
