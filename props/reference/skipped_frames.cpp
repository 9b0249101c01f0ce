#include "props/reference/skipped_frames.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "props/reference/methods.h"

namespace zeroproof::reference {

void SkippedFrames::on_event(const HookEvent& event) {
  count_time(event);
  gathers_.on_event(event);
  switch (event.kind) {
    case EventKind::engine_call:
      return see_call(event);
    case EventKind::engine_return:
      return see_return(event);
    case EventKind::module_fwd_pre:
      return judge_begun(event);
    case EventKind::zparam_gather_begin:
      return see_gather(event);
    case EventKind::zparam_partition:
      return see_partition(event);
    default:
      return;
  }
}

void SkippedFrames::count_time(const HookEvent& event) {
  if (event.kind < EventKind::zparam_gather_begin || event.kind > EventKind::zmod_release) return;
  const auto all = static_cast<std::int64_t>(world_.parameters.size());
  ledger_.count_parameters(all);
  if (event.transforms > 0) ledger_.leave_parameters(Freedom::transform, all);
}

SkippedFrames::Ids SkippedFrames::ids_of(const HookEvent& event) {
  Ids ids;
  for (const NameId param : event.params)
    if (const auto id = index_.parameter(param)) ids.insert(*id);
  return ids;
}

void SkippedFrames::see_call(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (method == calls::kContext) contexts_.push_back(ids_of(event));
  if (method == "z3.backward_epilogue") has_dropped_ = false;
  if (method == "fallback.forward") has_begun_ = true;
  if (method == "fallback.abandon") claims_.clear();
  if (method == "fallback.drop") {
    claims_.erase(event.index);
    has_dropped_ = true;
  }
  if (method == "fallback.gather") {
    judge_begun(event);
    tracked_.merge(ids_of(event));
  }
  if (method != "fallback.claim") return;
  Ids& claim = claims_[event.index] = ids_of(event);
  std::erase_if(claim, [&](std::size_t id) { return parameter(id).elements == 0; });
  ledger_.judge(Rule::claim_kept, std::ranges::includes(whole_, claim), event.lc,
                [] { return "a forward claims a parameter that is not whole"; });
}

void SkippedFrames::see_return(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (method == calls::kContext && !contexts_.empty()) contexts_.pop_back();
  if (method == calls::kForward) has_begun_ = false;
  if (method != "z3.backward_epilogue" || event.is_exceptional()) return;
  if (has_dropped_ && !scene_.is_in(calls::kForward))
    judge_freed(event, tracked_, "after a backward");
}

// Without outstanding graphs no parameter is gathered when a forward starts.
void SkippedFrames::judge_begun(const HookEvent& event) {
  if (std::exchange(has_begun_, false))
    judge_freed(event, claims_.empty() ? whole_ : tracked_, "where a forward has begun");
}

void SkippedFrames::judge_freed(const HookEvent& event, const Ids& candidates,
                                std::string_view when) {
  std::vector<std::string_view> left;
  for (const std::size_t id : candidates)
    if (whole_.contains(id) && !is_claimed(id) && !is_in_context(id) && parameter(id).elements > 0)
      left.push_back(parameter(id).name);
  ledger_.judge(Rule::claim_freed, left.empty(), event.lc, [&] {
    return fmt::format("{} is whole {}, and no graph claims it", fmt::join(left, ", "), when);
  });
}

void SkippedFrames::see_gather(const HookEvent& event) {
  for (const std::size_t id : ids_of(event))
    ledger_.judge(Rule::gather_once, whole_.insert(id).second, event.lc, [&] {
      return fmt::format("{} is gathered, and is whole or on its way", parameter(id).name);
    });
}

// A step and a load give up all, for the values change.
void SkippedFrames::see_partition(const HookEvent& event) {
  for (const std::size_t id : ids_of(event)) {
    const bool is_kept = is_claimed(id) && !scene_.is_in(calls::kResetAll);
    ledger_.judge(Rule::claim_kept, !is_kept, event.lc, [&] {
      return fmt::format("{} is freed, and a graph without a backward claims it",
                         parameter(id).name);
    });
    whole_.erase(id);
    tracked_.erase(id);
  }
}

bool SkippedFrames::is_claimed(std::size_t id) const {
  return std::ranges::any_of(claims_, [&](const auto& claim) { return claim.second.contains(id); });
}

bool SkippedFrames::is_in_context(std::size_t id) const {
  return std::ranges::any_of(contexts_, [&](const Ids& ids) { return ids.contains(id); });
}

}  // namespace zeroproof::reference
