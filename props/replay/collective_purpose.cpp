#include "props/replay/collective_purpose.h"

#include <utility>

namespace zeroproof {
namespace {

constexpr std::size_t kThreadsMax = 64;

CollectivePurpose used_up(std::vector<NameId>& params, bool is_certain, bool is_bucket = false) {
  return {std::exchange(params, {}), is_certain, is_bucket};
}

}  // namespace

void PurposeTracker::declare_param(NameId name) {
  const auto at = static_cast<std::size_t>(name.value);
  if (at >= is_param_.size()) is_param_.resize(at + 1);
  is_param_[at] = true;
}

bool PurposeTracker::has_param(NameId name) const {
  const auto at = static_cast<std::size_t>(name.value);
  return !name.is_none() && at < is_param_.size() && is_param_[at];
}

PurposeTracker::Announced& PurposeTracker::of_thread(std::int32_t thread) {
  const std::size_t at = thread < 0 ? 0 : static_cast<std::size_t>(thread) % kThreadsMax;
  if (at >= threads_.size()) threads_.resize(at + 1);
  return threads_[at];
}

void PurposeTracker::on_event(const HookEvent& event, const NameTable& names) {
  switch (event.kind) {
    case EventKind::mark: {  // "reduce:l1.bias": the user said what comes
      const std::string_view label = names.text(event.name);
      const NameId word = names.find(label.substr(label.rfind(':') + 1));
      if (has_param(word)) of_thread(event.thread).mark = {word};
      break;
    }
    case EventKind::zparam_gather_begin:
      of_thread(event.thread).gather = event.params;
      break;
    case EventKind::zparam_partition:
      of_thread(event.thread).released = event.params;
      break;
    case EventKind::engine_return:  // a unit is reduced inside the call that released it
      if (!threads_.empty()) of_thread(event.thread).released.clear();
      break;
    case EventKind::bucket_flush:
      of_thread(event.thread).flushed = event.params;
      break;
    case EventKind::bucket_ready:
      of_thread(event.thread).ready = event.params;
      break;
    default:
      break;
  }
}

CollectivePurpose PurposeTracker::take(const HookEvent& issue, const NameTable& names) {
  if (!issue.param.is_none()) return {{issue.param}, true};
  if (!issue.params.empty()) return {issue.params, true};
  Announced& announced = of_thread(issue.thread);
  const std::string_view op = names.text(issue.name);
  if (!announced.mark.empty()) return used_up(announced.mark, true);
  if (op.starts_with("all_gather") && !announced.gather.empty())
    return used_up(announced.gather, true);
  if (!announced.flushed.empty()) return used_up(announced.flushed, true, true);
  if (op.starts_with("reduce_scatter") && !announced.released.empty())
    return used_up(announced.released, true);
  if (!announced.ready.empty()) return used_up(announced.ready, false);
  return {};
}

}  // namespace zeroproof
