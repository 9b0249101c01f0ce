#include "sim/world/sim_group.h"

#include <utility>

#include "model/check.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::sim {

SimGroup::SimGroup(host::GroupMembers members, std::shared_ptr<MeetingPoint> point,
                   SimStreams& streams)
    : CollectiveGroup(std::move(members), streams.log()),
      point_(std::move(point)),
      streams_(streams) {}

Work SimGroup::issue(Stream& stream, const host::Collective& collective) {
  streams_.control().step({SeamOp::collective, stream.id().value, collective.input.elements});
  try {
    streams_.control().reach(SeamCall::collective);
  } catch (const RuntimeFault& fault) {
    point_->fail(fault.what(), false);
  }
  check_and_note(stream, collective);
  raise_if_failed();
  const auto sequence = static_cast<std::int64_t>(completions_.size());
  const auto member = static_cast<std::size_t>(rank());
  Rendezvous* meeting = nullptr;
  try {
    meeting = &point_->call(member, sequence, collective, std::exchange(content_, {}));
  } catch (const RuntimeFault& fault) {
    streams_.control().report(FindingKind::collective_mismatch, fault.what());
    raise_if_failed();
  }
  auto& queue = static_cast<SimStream&>(stream);
  for (const Span& span : {collective.input, collective.output}) queue.prepare(span);
  queue.push({.kind = StreamWork::Kind::collective,
              .point = point_.get(),
              .meeting = meeting,
              .member = member});
  for (const Span& span : {collective.input, collective.output}) queue.hold(span);
  completions_.push_back(streams_.make_event());
  if (auto* const observer = streams_.log().observer)
    observer->on_record(stream.id(), completions_.back());
  queue.push({.kind = StreamWork::Kind::record, .event = completions_.back()});
  if (queue.is_in_step()) streams_.control().block_on(completions_.back());
  return {sequence};
}

void SimGroup::wait(Work work, Stream& stream) {
  raise_if_failed();
  if (work.sequence < 0) return;
  stream.wait(completion(work));
}

bool SimGroup::is_completed(Work work) {
  raise_if_failed();
  streams_.control().step({SeamOp::completed, 0, work.sequence});
  const bool is_reached = streams_.is_reached(completion(work));
  streams_.control().note_progress(is_reached);
  return is_reached;
}

std::optional<std::string> SimGroup::failure() {
  if (point_->failure().empty()) return std::nullopt;
  return point_->failure();
}

void SimGroup::abort(const std::string& reason) {
  point_->fail(reason, true);
}

void SimGroup::raise_if_failed() {
  if (!point_->failure().empty()) notice(point_->failure());
  point_->raise_if_failed();
}

StreamEvent SimGroup::completion(Work work) const {
  ZP_CHECK(std::cmp_less(work.sequence, completions_.size()),
           "a work that the group did not issue");
  return completions_[static_cast<std::size_t>(work.sequence)];
}

}  // namespace zeroproof::sim
