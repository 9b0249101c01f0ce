#include "engine/runtime/host/host_group.h"

#include <utility>

#include "engine/runtime/host/elements.h"
#include "model/check.h"

namespace zeroproof::host {
namespace {

// Here, because whoever does the work for all is to meet no surprise.
void check(Span span) {
  if (!span.is_empty()) is_dense(span);
}

}  // namespace

HostGroup::HostGroup(GroupMembers members, std::shared_ptr<Rendezvous> rendezvous, StreamLog& log)
    : members_(std::move(members)), rendezvous_(std::move(rendezvous)), log_(log) {}

Work HostGroup::all_reduce(Stream& stream, Span data, ReduceOp op) {
  return issue(stream, {CollectiveOp::all_reduce, data, data, op, 0});
}

Work HostGroup::reduce(Stream& stream, Span data, int root, ReduceOp op) {
  check_root(root);
  return issue(stream, {CollectiveOp::reduce, data, data, op, root});
}

Work HostGroup::reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) {
  ZP_CHECK(input.elements == output.elements * size(), "reduce_scatter of uneven parts");
  return issue(stream, {CollectiveOp::reduce_scatter, input, output, op, 0});
}

Work HostGroup::all_gather(Stream& stream, Span output, Span input) {
  ZP_CHECK(output.elements == input.elements * size(), "all_gather of uneven parts");
  return issue(stream, {CollectiveOp::all_gather, input, output, ReduceOp::sum, 0});
}

Work HostGroup::broadcast(Stream& stream, Span data, int root) {
  check_root(root);
  return issue(stream, {CollectiveOp::broadcast, data, data, ReduceOp::sum, root});
}

Work HostGroup::barrier(Stream& stream) {
  return issue(stream, {});
}

Work HostGroup::issue(Stream& stream, const Collective& collective) {
  const bool is_barrier = collective.op == CollectiveOp::barrier;
  if (!is_barrier) {
    ZP_CHECK(collective.input.dtype() == collective.output.dtype(),
             "a collective with an input and an output of different dtypes");
    check(collective.input);
    check(collective.output);
    log_.read(stream, collective.input);
    log_.write(stream, collective.output);
  }
  noticing([&] { rendezvous_->meet(rank(), issued_, collective); });
  if (log_.observer) completions_.push_back(stream.record());
  return {issued_++};
}

void HostGroup::wait(Work work, Stream& stream) {
  noticing([&] { rendezvous_->throw_if_failed(); });
  if (work.sequence < 0) return;
  check_issued(work);
  if (log_.observer) stream.wait(completions_[static_cast<std::size_t>(work.sequence)]);
}

bool HostGroup::is_completed(Work work) {
  noticing([&] { rendezvous_->throw_if_failed(); });
  check_issued(work);
  return true;
}

void HostGroup::abort(const std::string& reason) {
  rendezvous_->abort(reason);
}

void HostGroup::check_root(int root) const {
  ZP_CHECK(root >= 0 && root < size(), "a root outside the group");
}

void HostGroup::check_issued(Work work) const {
  ZP_CHECK(work.sequence < issued_, "a work that the group did not issue");
}

template <class Act>
void HostGroup::noticing(Act act) {
  try {
    act();
  } catch (const RuntimeFault& fault) {
    notice(fault.what());
    throw;
  }
}

}  // namespace zeroproof::host
