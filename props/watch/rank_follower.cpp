#include "props/watch/rank_follower.h"

#include <fmt/format.h>

#include <utility>

namespace zeroproof {

void RankFollower::add(std::string_view line) {
  if (fault_ || has_ended_) return;
  ++line_number_;
  line_.assign(line);
  line_.append(kJsonPadding, '\0');
  auto fresh = replayer_ ? nullptr : std::make_unique<TraceReplayer>(options_, std::string());
  if (fresh) parser_ = std::make_unique<RecordParser>(fresh->names());
  record_.line = std::string_view(line_).substr(0, line.size());
  record_.line_number = line_number_;
  if (const ParseResult parsed = parser_->parse(record_.line, record_); !parsed)
    return refuse(parsed.error());
  if (fresh) {
    const auto* header = std::get_if<HeaderRecord>(&record_.body);
    if (header == nullptr) return refuse("its first record is not a header");
    if (auto begun = fresh->begin(*header); !begun) return refuse(begun.error().text);
    replayer_ = std::move(fresh);
  }
  take();
}

void RankFollower::take() {
  const HookEvent* event = record_.event();
  if (event != nullptr && event->lc <= last_lc_) return refuse("the logical clock must increase");
  if (event != nullptr) {
    last_lc_ = event->lc;
    ++events_;
  }
  has_ended_ = std::holds_alternative<EndRecord>(record_.body);
  replayer_->feed(record_);
  if (replayer_->has_fault()) fault_ = replayer_->result().fault;
}

void RankFollower::refuse(std::string_view what) {
  fault_ = Error{ErrorCode::unreadable, fmt::format("line {}: {}", line_number_, what)};
}

namespace {

constexpr const char* kNoEnd = "truncated: no end record; what stands before it was read";

}  // namespace

TraceReplayer::SoFar RankFollower::so_far(const std::string& path, bool is_over) const {
  TraceReplayer::SoFar now = replayer_->so_far(has_ended_);
  now.trace.path = path;
  now.trace.fault = fault_;
  if (is_over && !has_ended_ && !fault_)
    now.trace.fault = Error{ErrorCode::unreadable, fmt::format("{}: {}", path, kNoEnd)};
  return now;
}

TraceReplayer::SoFar RankFollower::finish(const std::string& path) {
  if (fault_) replayer_->set_fault(*fault_);
  replayer_->finish(has_ended_ ? std::nullopt
                               : std::optional<std::string>(fmt::format("{}: {}", path, kNoEnd)));
  TraceReplayer::SoFar over{std::move(replayer_->result()), *replayer_->digest()};
  over.trace.path = path;
  return over;
}

}  // namespace zeroproof
