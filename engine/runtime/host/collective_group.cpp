#include "engine/runtime/host/collective_group.h"

#include "engine/runtime/host/elements.h"
#include "model/check.h"

namespace zeroproof::host {
namespace {

// Here, because the rank that does the work for all must not fail.
void check(Span span) {
  if (!span.is_empty()) is_dense(span);
}

}  // namespace

Work CollectiveGroup::all_reduce(Stream& stream, Span data, ReduceOp op) {
  return issue(stream, {CollectiveOp::all_reduce, data, data, op, 0});
}

Work CollectiveGroup::reduce(Stream& stream, Span data, int root, ReduceOp op) {
  check_root(root);
  return issue(stream, {CollectiveOp::reduce, data, data, op, root});
}

Work CollectiveGroup::reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) {
  ZP_CHECK(input.elements == output.elements * size(), "reduce_scatter of uneven parts");
  return issue(stream, {CollectiveOp::reduce_scatter, input, output, op, 0});
}

Work CollectiveGroup::all_gather(Stream& stream, Span output, Span input) {
  ZP_CHECK(output.elements == input.elements * size(), "all_gather of uneven parts");
  return issue(stream, {CollectiveOp::all_gather, input, output, ReduceOp::sum, 0});
}

Work CollectiveGroup::broadcast(Stream& stream, Span data, int root) {
  check_root(root);
  return issue(stream, {CollectiveOp::broadcast, data, data, ReduceOp::sum, root});
}

Work CollectiveGroup::barrier(Stream& stream) {
  return issue(stream, {});
}

void CollectiveGroup::check_and_note(const Stream& stream, const Collective& collective) const {
  if (collective.op == CollectiveOp::barrier) return;
  ZP_CHECK(collective.input.dtype() == collective.output.dtype(),
           "a collective with an input and an output of different dtypes");
  check(collective.input);
  check(collective.output);
  log_.read(stream, collective.input);
  log_.write(stream, collective.output);
}

void CollectiveGroup::check_root(int root) const {
  ZP_CHECK(root >= 0 && root < size(), "a root outside the group");
}

}  // namespace zeroproof::host
