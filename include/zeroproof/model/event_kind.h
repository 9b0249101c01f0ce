#pragma once

#include <cstdint>
#include <string_view>

namespace zeroproof {

// The kinds of hooktrace 1.x (docs/reference/trace_format.md section 5), in the order of that
// table. Append only: the order is not part of the file format, but fingerprints depend on it.
enum class EventKind : std::uint8_t {
  unknown,  // a kind this version does not know; readers pass it through
  module_fwd_pre,
  module_fwd_post,
  module_bwd_pre,
  module_bwd_post,
  tensor_hook,
  param_tensor_hook,
  param_post_acc,
  multi_hook,
  node_prehook,
  node_posthook,
  node_exec,
  gt_begin,
  gt_end,
  cb_queue,
  cb_begin,
  cb_end,
  ckpt_forward_begin,
  ckpt_forward_end,
  ckpt_recompute_begin,
  ckpt_recompute_end,
  fn_forward_begin,
  fn_forward_end,
  fn_backward_begin,
  fn_backward_end,
  ft_push,
  ft_pop,
  autocast_enter,
  autocast_exit,
  zparam_gather_begin,
  zparam_gather_end,
  zparam_partition,
  zparam_status,
  zmod_fetch,
  zmod_release,
  bucket_add,
  bucket_flush,
  bucket_ready,
  coll_issue,
  coll_complete,
  bhs_call,
  bhs_return,
  engine_call,
  engine_return,
  opt_step,
  opt_zero_grad,
  opt_state,
  exc,
  mark,
};

// "module.fwd_pre" for module_fwd_pre; "unknown" for unknown. The view is static.
std::string_view event_kind_name(EventKind kind);

// unknown when the name is not one of hooktrace 1.x.
EventKind event_kind_of(std::string_view name);

}  // namespace zeroproof
