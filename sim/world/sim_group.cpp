#include "sim/world/sim_group.h"

#include <utility>

#include "engine/runtime/fault.h"
#include "engine/runtime/host/elements.h"
#include "model/check.h"

namespace zeroproof::sim {

using host::Collective;
using host::CollectiveOp;

SimGroup::SimGroup(host::GroupMembers members, std::shared_ptr<MeetingPoint> point,
                   SimStreams& streams)
    : members_(std::move(members)), point_(std::move(point)), streams_(streams) {}

Work SimGroup::all_reduce(Stream& stream, Span data, ReduceOp op) {
  return issue(stream, {CollectiveOp::all_reduce, data, data, op, 0});
}

Work SimGroup::reduce(Stream& stream, Span data, int root, ReduceOp op) {
  ZP_CHECK(root >= 0 && root < size(), "a root outside the group");
  return issue(stream, {CollectiveOp::reduce, data, data, op, root});
}

Work SimGroup::reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) {
  ZP_CHECK(input.elements == output.elements * size(), "reduce_scatter of uneven parts");
  return issue(stream, {CollectiveOp::reduce_scatter, input, output, op, 0});
}

Work SimGroup::all_gather(Stream& stream, Span output, Span input) {
  ZP_CHECK(output.elements == input.elements * size(), "all_gather of uneven parts");
  return issue(stream, {CollectiveOp::all_gather, input, output, ReduceOp::sum, 0});
}

Work SimGroup::broadcast(Stream& stream, Span data, int root) {
  ZP_CHECK(root >= 0 && root < size(), "a root outside the group");
  return issue(stream, {CollectiveOp::broadcast, data, data, ReduceOp::sum, root});
}

Work SimGroup::barrier(Stream& stream) {
  return issue(stream, {});
}

Work SimGroup::issue(Stream& stream, const Collective& collective) {
  streams_.control().step({SeamOp::collective, stream.id().value, collective.input.elements});
  try {
    streams_.control().reach(SeamCall::collective);
  } catch (const RuntimeFault& fault) {
    point_->fail(fault.what(), false);
  }
  if (collective.op != CollectiveOp::barrier) {
    ZP_CHECK(collective.input.dtype() == collective.output.dtype(),
             "a collective with an input and an output of different dtypes");
    if (!collective.input.is_empty()) host::is_dense(collective.input);
    if (!collective.output.is_empty()) host::is_dense(collective.output);
    streams_.log().read(stream, collective.input);
    streams_.log().write(stream, collective.output);
  }
  raise_if_failed();
  const auto sequence = static_cast<std::int64_t>(completions_.size());
  const auto member = static_cast<std::size_t>(rank());
  Meeting* meeting = nullptr;
  try {
    meeting = &point_->call(member, sequence, collective, std::exchange(content_, {}));
  } catch (const RuntimeFault& fault) {
    streams_.control().report(FindingKind::collective_mismatch, fault.what());
    raise_if_failed();
  }
  auto& queue = static_cast<SimStream&>(stream);
  queue.push({.kind = StreamWork::Kind::collective,
              .point = point_.get(),
              .meeting = meeting,
              .member = member});
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
  streams_.control().note(is_reached ? 1 : 0);
  return is_reached;
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
