#include "props/watch/rank_follower.h"

#include <fmt/format.h>

#include <utility>

namespace zeroproof {
namespace {

constexpr const char* kNoEnd = "no end record";

}  // namespace

void RankFollower::add(std::string_view line) {
  if (fault_ || has_ended()) return;
  ++line_number_;
  line_.assign(line);
  line_.append(kJsonPadding, '\0');
  auto fresh = replayer_ ? nullptr : std::make_unique<TraceReplayer>(options_, std::string());
  if (fresh) parser_ = std::make_unique<RecordParser>(fresh->names());
  record_.line = std::string_view(line_).substr(0, line.size());
  record_.line_number = line_number_;
  if (const ParseResult parsed = parser_->parse(record_.line, record_); !parsed)
    return refuse(parsed.error());
  if (const ParseResult admitted = order_.admit(record_); !admitted)
    return refuse(admitted.error());
  if (fresh) {
    if (auto begun = fresh->begin(std::get<HeaderRecord>(record_.body)); !begun)
      return refuse(begun.error().text);
    replayer_ = std::move(fresh);
  }
  take();
}

void RankFollower::take() {
  if (record_.event() != nullptr) ++events_;
  replayer_->feed(record_);
  if (replayer_->has_fault()) fault_ = replayer_->result().fault;
}

void RankFollower::refuse(std::string_view what) {
  fault_ = Error{ErrorCode::unreadable, fmt::format("line {}: {}", line_number_, what)};
}

TraceReplayer::SoFar RankFollower::so_far(const std::string& path, bool is_over) const {
  TraceReplayer::SoFar now = replayer_->so_far(has_ended());
  now.trace.path = path;
  now.trace.fault = fault_;
  if (is_over && !has_ended() && !fault_)
    now.trace.fault = Error{ErrorCode::unreadable, truncation_text(path, kNoEnd)};
  return now;
}

TraceReplayer::SoFar RankFollower::finish(const std::string& path) {
  if (fault_) replayer_->set_fault(*fault_);
  replayer_->finish(has_ended() ? std::nullopt
                                : std::optional<std::string>(truncation_text(path, kNoEnd)));
  TraceReplayer::SoFar over{std::move(replayer_->result()), *replayer_->digest()};
  over.trace.path = path;
  return over;
}

}  // namespace zeroproof
