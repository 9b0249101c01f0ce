#include "props/replay/ddp_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

constexpr std::string_view kOnceRule =
    "DDP: a parameter becomes ready once a backward, and its bucket is reduced after that";
constexpr std::string_view kOrderRule =
    "DDP: buckets are reduced in the order of their numbers, the same on all ranks";
constexpr std::string_view kCompleteRule =
    "DDP: all buckets are full and launched before the outermost graph task of the backward ends";

}  // namespace

void DdpRules::on_event(const HookEvent& event, std::string_view line) {
  switch (event.kind) {
    case EventKind::gt_begin:
      if (backward_.begins()) begin_backward(event);
      break;
    case EventKind::gt_end:
      if (backward_.ends()) end_backward(event);
      break;
    case EventKind::bucket_ready:
      on_bucket(event, line);
      break;
    case EventKind::param_post_acc:
      on_gradient(event);
      break;
    case EventKind::exc:
      on_exception(event);
      break;
    default:
      break;
  }
}

void DdpRules::begin_backward(const HookEvent& event) {
  reducers_.clear();
  arrived_.clear();
  findings_.begin_story(event);
}

void DdpRules::on_bucket(const HookEvent& event, std::string_view line) {
  Reducer& reducer = reducers_[event.engine];
  reducer.tells_last = reducer.tells_last || line.find("\"last\":") != std::string_view::npos;
  reducer.has_last = reducer.has_last || line.find("\"last\":true") != std::string_view::npos;
  findings_.tell({event.rank, event.lc,
                  fmt::format("bucket {} launched ({} bytes)", event.index, event.bytes)});
  if (event.index != reducer.next_bucket)
    findings_.find(
        {.kind = event.index < reducer.next_bucket ? "ddp.bucket_twice" : "ddp.bucket_order",
         .what = fmt::format("bucket {} was launched where bucket {} was due", event.index,
                             reducer.next_bucket),
         .rule = std::string(kOrderRule),
         .look_at = "whether ranks use different parameters or rebuilt their buckets at different "
                    "iterations"},
        event);
  reducer.next_bucket = event.index + 1;
  launch(reducer, event);
}

// A bucket leaves after its last gradient. Unused parameters are ready without one where DDP looks
// for them.
void DdpRules::launch(Reducer& reducer, const HookEvent& event) {
  for (const NameId param : event.params) {
    if (arrived_.contains(param))
      reducer.launched.insert(param);
    else
      reducer.is_mapped = reducer.is_mapped && finds_unused(event.engine);
  }
}

bool DdpRules::finds_unused(EngineId engine) const {
  return std::any_of(facts_.wrappers.begin(), facts_.wrappers.end(), [&](const auto& entry) {
    const WrapperRecord& wrapper = entry.second;
    const bool is_meant = engine.is_none() ? wrapper.kind == "ddp" : entry.first == engine.value;
    return is_meant && wrapper.finds_unused && !wrapper.has_static_graph;
  });
}

void DdpRules::on_gradient(const HookEvent& event) {
  arrived_.insert(event.param);
  const auto late = std::find_if(reducers_.begin(), reducers_.end(), [&](const auto& entry) {
    return entry.second.is_mapped && entry.second.launched.contains(event.param);
  });
  if (late == reducers_.end()) return;
  const std::string param(names_.text(event.param));
  findings_.find(
      {.kind = "ddp.ready_twice",
       .what = fmt::format("the gradient of {} arrived again after its bucket had been launched: "
                           "what came later is not reduced",
                           param),
       .rule = std::string(kOnceRule),
       .look_at = "weights used in two reentrant checkpoints, or a backward inside a hook: use "
                  "checkpoint(..., use_reentrant=False), or DDP(static_graph=True)",
       .parameter = param},
      event);
}

void DdpRules::end_backward(const HookEvent& event) {
  if (backward_.is_unsynced() || event.is_exceptional()) return;
  for (const auto& [engine, reducer] : reducers_) judge_end(reducer, event);
}

void DdpRules::judge_end(const Reducer& reducer, const HookEvent& event) {
  if (!reducer.is_mapped || !reducer.tells_last || reducer.has_last) return;
  const std::vector<std::string> missing = unready_params(reducer);
  findings_.find(
      {.kind = "ddp.buckets_incomplete",
       .what = fmt::format(
           "the backward ended with {} of its buckets launched; no gradient came "
           "for {}",
           reducer.next_bucket,
           missing.empty() ? "parameters that the trace does not name" : listed(missing)),
       .rule = std::string(kCompleteRule),
       .look_at = "outputs of the model that the loss does not use; "
                  "DDP(find_unused_parameters=True) if that is meant. The next forward will raise",
       .parameter = missing.size() == 1 ? missing.front() : std::string()},
      event);
}

std::vector<std::string> DdpRules::unready_params(const Reducer& reducer) const {
  std::vector<std::string> missing;
  for (const auto& [param, fact] : facts_.params) {
    const NameId id = names_.find(param);
    const bool is_ready = arrived_.contains(id) || reducer.launched.contains(id);
    if (fact.requires_grad && (id.is_none() || !is_ready)) missing.push_back(param);
  }
  return missing;
}

// What the reducer itself says.
void DdpRules::on_exception(const HookEvent& event) {
  const std::string_view message = names_.text(event.message);
  if (message.find("mark a variable ready only once") != std::string_view::npos)
    findings_.find(
        {.kind = "ddp.ready_twice",
         .what = "the reducer refused a parameter that became ready twice in one backward",
         .rule = std::string(kOnceRule),
         .look_at = "reentrant checkpoints together with find_unused_parameters, or a module used "
                    "in two of them: use_reentrant=False, or DDP(static_graph=True)"},
        event);
  if (message.find("have finished reduction in the prior iteration") != std::string_view::npos)
    findings_.find(
        {.kind = "ddp.buckets_incomplete",
         .what = "a forward found the reduction of the backward before it unfinished",
         .rule = std::string(kCompleteRule),
         .look_at = "outputs that the loss does not use, several forwards before a backward; "
                    "find_unused_parameters=True if parameters are left out on purpose"},
        event);
}

}  // namespace zeroproof
