#include "engine/zero/communicator.h"

#include <fmt/format.h>

namespace zeroproof {

Communicator::Communicator(ProcessGroup& group, const Events& events)
    : group_(group), events_(events), label_(fmt::format("g{}", fmt::join(group.ranks(), "_"))) {}

Work Communicator::all_reduce(Stream& stream, Span data, ReduceOp op, const CollectiveForm& form) {
  const Issued issued = issue("all_reduce", data.bytes(), form);
  return finish(issued, group_.all_reduce(stream, data, op));
}

Work Communicator::reduce(Stream& stream, Span data, int root, ReduceOp op,
                          const CollectiveForm& form) {
  const Issued issued = issue("reduce", data.bytes(), form);
  return finish(issued, group_.reduce(stream, data, root, op));
}

Work Communicator::reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op,
                                  const CollectiveForm& form) {
  const Issued issued = issue("reduce_scatter_tensor", input.bytes(), form);
  return finish(issued, group_.reduce_scatter(stream, output, input, op));
}

Work Communicator::all_gather(Stream& stream, Span output, Span input, const CollectiveForm& form) {
  const Issued issued = issue("all_gather_into_tensor", output.bytes(), form);
  return finish(issued, group_.all_gather(stream, output, input));
}

Work Communicator::broadcast(Stream& stream, Span data, int root, const CollectiveForm& form) {
  const Issued issued = issue("broadcast", data.bytes(), form);
  return finish(issued, group_.broadcast(stream, data, root));
}

void Communicator::wait(Work work, Stream& stream) {
  group_.wait(work, stream);
  const auto at = outstanding_.find(work.sequence);
  if (at == outstanding_.end()) return;
  complete(at->second);
  outstanding_.erase(at);
}

Communicator::Issued Communicator::issue(std::string_view op, std::int64_t bytes,
                                         const CollectiveForm& form) {
  Issued issued{.op = op,
                .group = form.is_default_group ? std::string_view("world") : label_,
                .sequence = form.is_default_group ? next_default_++ : next_named_++,
                .bytes = form.bytes >= 0 ? form.bytes : bytes,
                .is_async = form.is_async};
  send(EventKind::coll_issue, issued);
  if (group_.compares_contents()) group_.announce(form.contents);
  return issued;
}

Work Communicator::finish(const Issued& issued, Work work) {
  if (!issued.is_async)
    complete(issued);
  else if (events_.is_on())
    outstanding_[work.sequence] = issued;
  return work;
}

void Communicator::complete(const Issued& issued) {
  send(EventKind::coll_complete, issued);
}

void Communicator::send(EventKind kind, const Issued& issued) const {
  if (!events_.is_on()) return;
  HookEvent event;
  event.kind = kind;
  event.name = events_.name(issued.op);
  event.group = events_.name(issued.group);
  event.index = issued.sequence;
  event.bytes = issued.bytes;
  event.is_async = issued.is_async;
  events_.send(std::move(event));
}

}  // namespace zeroproof
