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
      if (depth_++ == 0) begin_backward(event);
      break;
    case EventKind::gt_end:
      if (depth_ > 0 && --depth_ == 0) end_backward(event);
      break;
    case EventKind::bucket_ready:
      tells_last_ = tells_last_ || line.find("\"last\":") != std::string_view::npos;
      has_last_ = line.find("\"last\":true") != std::string_view::npos;
      on_bucket(event);
      break;
    case EventKind::param_post_acc:
      on_gradient(event);
      break;
    case EventKind::exc:
      on_exception(event);
      break;
    case EventKind::opt_step:
      on_step(event);
      break;
    case EventKind::mark:
      if (names_.text(event.name) == "ddp.no_sync") is_next_unsynced_ = true;
      break;
    default:
      break;
  }
}

void DdpRules::begin_backward(const HookEvent& event) {
  root_ = event.graph_task;
  is_unsynced_ = std::exchange(is_next_unsynced_, false);
  next_bucket_ = 0;
  has_last_ = false;
  launched_.clear();
  arrived_.clear();
  findings_.begin_story(event);
}

void DdpRules::on_bucket(const HookEvent& event) {
  has_buckets_ever_ = true;
  unsynced_lc_ = 0;
  findings_.tell({event.rank, event.lc,
                  fmt::format("bucket {} launched ({} bytes)", event.index, event.bytes)});
  if (event.index != next_bucket_)
    findings_.find(
        {.kind = event.index < next_bucket_ ? "ddp.bucket_twice" : "ddp.bucket_order",
         .what = fmt::format("bucket {} was launched where bucket {} was due", event.index,
                             next_bucket_),
         .rule = std::string(kOrderRule),
         .look_at = "whether ranks use different parameters or rebuilt their buckets at different "
                    "iterations"},
        event);
  next_bucket_ = event.index + 1;
  for (const NameId param : event.params) launched_.insert(param);
}

void DdpRules::on_gradient(const HookEvent& event) {
  arrived_.insert(event.param);
  if (!launched_.contains(event.param)) return;
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
  if (is_unsynced_) {
    if (!event.is_exceptional()) unsynced_lc_ = event.lc;
    return;
  }
  const bool is_short = has_buckets_ever_ && (next_bucket_ == 0 || (tells_last_ && !has_last_));
  if (event.is_exceptional() || !is_short) return;
  const std::vector<std::string> missing = unready_params();
  findings_.find(
      {.kind = next_bucket_ == 0 ? "ddp.no_reduction" : "ddp.buckets_incomplete",
       .what = fmt::format(
           "the backward ended with {} of its buckets launched; no gradient came "
           "for {}",
           next_bucket_ == 0 ? std::string("none") : fmt::format("{}", next_bucket_),
           missing.empty() ? "parameters that the trace does not name" : listed(missing)),
       .rule = std::string(kCompleteRule),
       .look_at = "outputs of the model that the loss does not use; "
                  "DDP(find_unused_parameters=True) if that is meant. The next forward will raise",
       .parameter = missing.size() == 1 ? missing.front() : std::string()},
      event);
}

std::vector<std::string> DdpRules::unready_params() const {
  std::vector<std::string> missing;
  for (const std::string& param : declared_) {
    const NameId id = names_.find(param);
    if (id.is_none() || (!arrived_.contains(id) && !launched_.contains(id)))
      missing.push_back(param);
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

void DdpRules::on_step(const HookEvent& event) {
  if (unsynced_lc_ == 0) return;
  findings_.find(
      {.kind = "ddp.step_without_sync",
       .what = fmt::format("the optimizer stepped with gradients of the backward that ended at lc "
                           "{} under no_sync: they are those of this rank alone",
                           unsynced_lc_),
       .rule = "DDP: the last backward before a step runs outside no_sync, so that what was "
               "accumulated is reduced",
       .look_at = "the condition of no_sync(): it must be off for the boundary micro-batch, in "
                  "forward too"},
      event);
  unsynced_lc_ = 0;
}

}  // namespace zeroproof
