#include "props/reference/collective_log.h"
#include "props/reference/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace zeroproof::reference {
CollectiveLog::CollectiveLog(const Surroundings& around)
    : Part(around),
      capacity_(std::min(config().reduce_bucket_size, world_.trained_elements() + 1)) {
  for (int group = 0; group < world_.groups(); ++group)
    layouts_.emplace_back(world_, group, config().stage == 0 ? 1 : world_.ranks);
}

void CollectiveLog::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::coll_issue:
      return see_collective(event);
    case EventKind::bucket_flush:
      return begin(event);
    case EventKind::engine_call:
      if (text(event.name) == calls::kPartition) return end(event);
      if (text(event.name) == calls::kWholeReduction) open_ = Reduction{};
      return;
    case EventKind::engine_return:
      if (text(event.name) == calls::kAverage || text(event.name) == calls::kWholeReduction)
        return end(event);
      return;
    default:
      return;
  }
}

void CollectiveLog::see_collective(const HookEvent& event) {
  const std::string_view operation = text(event.name);
  ledger_.judge(Rule::collective_empty,
                event.bytes != 0 || operation == "broadcast" || !world_.is_ours(), event.lc,
                [&] { return fmt::format("a {} of no bytes", operation); });
  const Unseen& unseen = world_.unseen;
  const bool is_silent = config().stage < 3 && !unseen.marks_tiles &&
                         !unseen.differentiates_inside && scene_.graph_tasks() == 0 &&
                         scene_.is_in(calls::kForward);
  if (config().stage < 3)
    ledger_.judge(Rule::forward_silent, !is_silent, event.lc,
                  [&] { return fmt::format("a forward issues a {}", operation); });
  if (open_) open_->sent.push_back({std::string(operation), event.bytes});
}

void CollectiveLog::begin(const HookEvent& event) {
  open_ = Reduction{.elements = event.numel,
                    .dtype = dtype_of(text(event.name)).value_or(DType::float32)};
  for (const NameId param : event.params)
    if (const auto id = index_.parameter(param)) open_->parameters.push_back(*id);
}

void CollectiveLog::end(const HookEvent& event) {
  const std::optional<Reduction> reduction = std::exchange(open_, std::nullopt);
  if (!reduction || event.is_exceptional() || !world_.has_sizes) return;
  if (!world_.is_ours()) return ledger_.leave_collective(Freedom::other_dialect);
  judge(event, *reduction, form_of(*reduction));
}

void CollectiveLog::judge(const HookEvent& event, const Reduction& reduction, const Form& form) {
  std::int64_t bytes = 0;
  for (const Sent& sent : reduction.sent) {
    bytes += sent.bytes;
    ledger_.judge(Rule::reduce_operation, sent.operation == form.operation, event.lc, [&] {
      return fmt::format("a bucket is reduced by {}, and the configuration wants {}",
                         sent.operation, form.operation);
    });
  }
  ledger_.judge(Rule::reduce_bytes, bytes == form.bytes, event.lc, [&] {
    return fmt::format("a reduction of {} gradients sends {} bytes, and they have {} on the wire",
                       reduction.parameters.size(), bytes, form.bytes);
  });
  ledger_.judge(Rule::reduce_pieces, std::cmp_equal(reduction.sent.size(), form.pieces), event.lc,
                [&] {
                  return fmt::format("a bucket is reduced in {} pieces, and {} are enough",
                                     reduction.sent.size(), form.pieces);
                });
}

CollectiveLog::Form CollectiveLog::form_of(const Reduction& reduction) const {
  if (config().stage == 0) return whole_form();
  return config().stage == 3 ? partitioned_form(reduction) : flat_form(reduction);
}

// 2.7: every gradient of the window, as zeros where there is none; one collective for each group.
CollectiveLog::Form CollectiveLog::whole_form() const {
  Form form{.operation = "all_reduce"};
  for (const FlatLayout& layout : layouts_) {
    if (layout.elements() == 0) continue;
    ++form.pieces;
    form.bytes += layout.elements() * item_bytes(config().communication_dtype());
  }
  return form;
}

// 2.18 (b): slices of all ranks, each padded to the size of the first.
CollectiveLog::Form CollectiveLog::partitioned_form(const Reduction& reduction) const {
  const std::int64_t item = item_bytes(reduction.dtype);
  if (!config().reduce_scatter) return {"all_reduce", 1, reduction.elements * item};
  std::int64_t elements = 0;
  for (const std::size_t id : reduction.parameters)
    elements += (parameter(id).elements + world_.ranks - 1) / world_.ranks * world_.ranks;
  return {"reduce_scatter_tensor", 1, elements * item};
}

// A gradient that has no place in the bucket's buffer travels alone.
bool CollectiveLog::is_in_place(const Reduction& reduction) const {
  const auto is_large = [&](std::size_t id) { return parameter(id).elements > capacity_; };
  return !config().contiguous_gradients || std::ranges::any_of(reduction.parameters, is_large);
}

CollectiveLog::Form CollectiveLog::flat_form(const Reduction& reduction) const {
  const DType wire = world_.sequence_ranks > 1 ? DType::float32 : reduction.dtype;
  const auto gradients = static_cast<std::int64_t>(reduction.parameters.size());
  if (is_in_place(reduction))
    return {"all_reduce", gradients, reduction.elements * item_bytes(wire)};
  if (!config().reduce_scatter || config().use_multi_rank_bucket_allreduce)
    return {"all_reduce", 1, reduction.elements * item_bytes(wire)};
  Form form{"reduce", 0, reduction.elements * item_bytes(reduction.dtype)};
  for (const std::size_t id : reduction.parameters)
    for (const FlatLayout& layout : layouts_) form.pieces += layout.owners(id);
  return form;
}

}  // namespace zeroproof::reference
