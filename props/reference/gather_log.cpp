#include "props/reference/gather_log.h"

#include <fmt/format.h>

namespace zeroproof::reference {
namespace {

bool is_gather(std::string_view operation) {
  return operation.starts_with("all_gather");
}

}  // namespace

void GatherLog::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::zparam_gather_begin:
      judge(event);
      return begin(event);
    case EventKind::coll_issue:
    case EventKind::coll_complete:
      if (is_gather(text(event.name))) see_collective(event);
      return;
    case EventKind::zparam_gather_end:
      return see_end(event);
    case EventKind::engine_return:
      if (event.is_exceptional()) is_open_ = false;
      return judge(event);
    case EventKind::mark:
      if (text(event.name) == "gather_abandoned") is_open_ = false;
      return;
    case EventKind::engine_call:
    case EventKind::zmod_fetch:
    case EventKind::zmod_release:
    case EventKind::zparam_partition:
    case EventKind::gt_begin:
    case EventKind::gt_end:
      return judge(event);
    default:
      return;
  }
}

void GatherLog::begin(const HookEvent& event) {
  ids_.clear();
  for (const NameId param : event.params)
    if (const auto id = index_.parameter(param)) ids_.push_back(*id);
  waited_ = std::set(ids_.begin(), ids_.end());
  is_open_ = ids_.size() == event.params.size();
  is_reclaimed_ = false;
  pieces_ = bytes_ = 0;
}

void GatherLog::see_collective(const HookEvent& event) {
  const Collective collective{event.group, event.index};
  if (event.kind == EventKind::coll_complete) {
    outstanding_.erase(collective);
    return;
  }
  if (event.is_async) outstanding_.insert(collective);
  if (!is_open_ || waited_.empty()) return;
  ++pieces_;
  bytes_ += event.bytes;
  if (world_.is_ours())
    ledger_.check(Rule::gather_bytes, !event.is_async || world_.ranks > 1, event.lc,
                  "one rank gathers asynchronously, and has everything");
}

void GatherLog::see_end(const HookEvent& event) {
  bool is_last = is_open_;  // it ends the last gather that began, and not an earlier one
  for (const NameId param : event.params)
    if (const auto id = index_.parameter(param)) is_last = waited_.erase(*id) > 0 && is_last;
  is_reclaimed_ = is_last && pieces_ == 0 && world_.ranks > 1;
}

// 3.1: sorted by id and grouped by dtype; each slice is padded to the size of the first.
void GatherLog::judge(const HookEvent& event) {
  const bool is_whole = is_open_ && pieces_ > 0 && world_.is_ours() && world_.has_sizes;
  is_open_ = false;
  if (!is_whole) return;
  std::map<DType, std::int64_t> slices;
  for (const std::size_t id : ids_)
    slices[parameter(id).gathers_as] += (parameter(id).elements + world_.ranks - 1) / world_.ranks;
  std::int64_t bytes = 0;
  for (const auto& [dtype, elements] : slices) bytes += elements * world_.ranks * item_bytes(dtype);
  const auto pieces = static_cast<std::int64_t>(slices.size());
  ledger_.judge(Rule::gather_bytes, pieces_ == pieces && bytes_ == bytes, event.lc, [&] {
    return fmt::format("{} parameters are gathered by {} collectives of {} bytes; {} of {} do",
                       ids_.size(), pieces_, bytes_, pieces, bytes);
  });
}

}  // namespace zeroproof::reference
