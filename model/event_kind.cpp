#include "zeroproof/model/event_kind.h"

#include <algorithm>
#include <array>

namespace zeroproof {
namespace {

constexpr std::array kEventNames = {
    std::string_view("unknown"),
    std::string_view("module.fwd_pre"),
    std::string_view("module.fwd_post"),
    std::string_view("module.bwd_pre"),
    std::string_view("module.bwd_post"),
    std::string_view("tensor.hook"),
    std::string_view("param.tensor_hook"),
    std::string_view("param.post_acc"),
    std::string_view("multi.hook"),
    std::string_view("node.prehook"),
    std::string_view("node.posthook"),
    std::string_view("node.exec"),
    std::string_view("gt.begin"),
    std::string_view("gt.end"),
    std::string_view("cb.queue"),
    std::string_view("cb.begin"),
    std::string_view("cb.end"),
    std::string_view("ckpt.forward_begin"),
    std::string_view("ckpt.forward_end"),
    std::string_view("ckpt.recompute_begin"),
    std::string_view("ckpt.recompute_end"),
    std::string_view("fn.forward_begin"),
    std::string_view("fn.forward_end"),
    std::string_view("fn.backward_begin"),
    std::string_view("fn.backward_end"),
    std::string_view("ft.push"),
    std::string_view("ft.pop"),
    std::string_view("autocast.enter"),
    std::string_view("autocast.exit"),
    std::string_view("zparam.gather_begin"),
    std::string_view("zparam.gather_end"),
    std::string_view("zparam.partition"),
    std::string_view("zparam.status"),
    std::string_view("zmod.fetch"),
    std::string_view("zmod.release"),
    std::string_view("bucket.add"),
    std::string_view("bucket.flush"),
    std::string_view("bucket.ready"),
    std::string_view("coll.issue"),
    std::string_view("coll.complete"),
    std::string_view("bhs.call"),
    std::string_view("bhs.return"),
    std::string_view("engine.call"),
    std::string_view("engine.return"),
    std::string_view("opt.step"),
    std::string_view("opt.zero_grad"),
    std::string_view("opt.state"),
    std::string_view("exc"),
    std::string_view("mark"),
};
static_assert(kEventNames.size() == static_cast<std::size_t>(EventKind::mark) + 1);

}  // namespace

std::string_view event_kind_name(EventKind kind) {
  return kEventNames[static_cast<std::size_t>(kind)];
}

EventKind event_kind_of(std::string_view name) {
  const auto at = std::find(kEventNames.begin() + 1, kEventNames.end(), name);
  if (at == kEventNames.end()) return EventKind::unknown;
  return static_cast<EventKind>(at - kEventNames.begin());
}

}  // namespace zeroproof
