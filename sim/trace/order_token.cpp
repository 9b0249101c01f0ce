#include "sim/trace/order_token.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace zeroproof {
namespace {

class TokenWriter {
 public:
  TokenWriter(const HookEvent& event, const NameTable& names, std::string& out)
      : event_(event), names_(names), out_(out) {}

  bool write(TokenDetail detail) {
    return (detail == TokenDetail::engine && write_engine()) || write_order();
  }

 private:
  bool write_engine();
  bool write_order();

  bool word(std::string_view prefix, NameId name) {
    out_.append(prefix).append(names_.text(name));
    return true;
  }
  bool word(std::string_view prefix) { return word(prefix, event_.name); }
  bool suffix(bool is_due, std::string_view text) {
    if (is_due) out_ += text;
    return true;
  }
  bool numbered(std::string_view prefix) {
    fmt::format_to(std::back_inserter(out_), "{}{}#{}", prefix, names_.text(event_.name),
                   event_.index);
    return true;
  }
  bool levelled(std::string_view prefix) {
    fmt::format_to(std::back_inserter(out_), "{}{}{}", prefix, names_.text(event_.name),
                   event_.index);
    return true;
  }
  bool joined(std::string_view prefix) {
    out_ += prefix;
    for (std::size_t i = 0; i < event_.params.size(); ++i) {
      if (i > 0) out_ += ',';
      out_ += names_.text(event_.params[i]);
    }
    return true;
  }
  bool tensor_hook() {
    word("th:", event_.param);
    if (!names_.text(event_.name).empty()) word(":");
    return suffix(event_.is_grad_none, ":none");
  }

  const HookEvent& event_;
  const NameTable& names_;
  std::string& out_;
};

bool TokenWriter::write_engine() {
  switch (event_.kind) {
    case EventKind::engine_call:
      return word("e+:");
    case EventKind::bhs_call:
      return word("s+:");
    case EventKind::engine_return:
      return word("e-:") && suffix(event_.is_exceptional(), ":exc");
    case EventKind::zmod_fetch:
      return word(event_.is_forward ? "fetchF:" : "fetchB:");
    case EventKind::zmod_release:
      return word(event_.is_forward ? "releaseF:" : "releaseB:");
    case EventKind::zparam_gather_begin:
      return joined("gather+:");
    case EventKind::zparam_gather_end:
      return joined("gather-:");
    case EventKind::zparam_partition:
      return joined("part:");
    case EventKind::bucket_add:
      return word("badd:", event_.param);
    case EventKind::bucket_flush:
      return joined("bflush:");
    case EventKind::coll_issue:
      return numbered("coll:");
    case EventKind::coll_complete:
      return event_.is_async && numbered("wait:");
    case EventKind::opt_step:
      return word("optstep", NameId::none());
    case EventKind::opt_zero_grad:
      return word("zero_grad", NameId::none());
    default:
      return false;
  }
}

bool TokenWriter::write_order() {
  switch (event_.kind) {
    case EventKind::param_post_acc:
      return word("acc:", event_.param);
    case EventKind::param_tensor_hook:
      return tensor_hook();
    case EventKind::tensor_hook:
      return word("h:") && suffix(event_.is_grad_none, ":none");
    case EventKind::multi_hook:
      return word("mh:");
    case EventKind::module_fwd_pre:
      return word(event_.is_recompute ? "rfpre:" : "fpre:");
    case EventKind::module_fwd_post:
      return word(event_.is_recompute ? "rfpost:" : "fpost:");
    case EventKind::module_bwd_pre:
      return word("bpre:");
    case EventKind::module_bwd_post:
      return word("bpost:");
    case EventKind::node_prehook:
      return word("npre:");
    case EventKind::node_posthook:
      return word("npost:");
    case EventKind::gt_begin:
      return word("gt+", NameId::none());
    case EventKind::gt_end:
      return word("gt-", NameId::none()) && suffix(event_.is_exceptional(), ":exc");
    case EventKind::cb_queue:
      return word("cbq:");
    case EventKind::cb_begin:
      return word("cb+:");
    case EventKind::cb_end:
      return word("cb-:");
    case EventKind::ckpt_forward_begin:
      return word("cf+:");
    case EventKind::ckpt_forward_end:
      return word("cf-:");
    case EventKind::ckpt_recompute_begin:
      return word("rc+:");
    case EventKind::ckpt_recompute_end:
      return word("rc-:") && suffix(event_.is_early_stop, ":stop") &&
             suffix(event_.is_exceptional(), ":exc");
    case EventKind::fn_forward_begin:
      return word("fn+:");
    case EventKind::fn_forward_end:
      return word("fn-:");
    case EventKind::fn_backward_begin:
      return word("bn+:");
    case EventKind::fn_backward_end:
      return word("bn-:");
    case EventKind::ft_push:
      return levelled("ft+:");
    case EventKind::ft_pop:
      return levelled("ft-:");
    case EventKind::bucket_ready:
      fmt::format_to(std::back_inserter(out_), "bucket:{}", event_.index);
      return true;
    case EventKind::exc:
      return word("exc:");
    case EventKind::mark:
      return word("m:");
    default:
      return false;
  }
}

}  // namespace

bool append_order_token(const HookEvent& event, const NameTable& names, TokenDetail detail,
                        std::string& out) {
  return TokenWriter(event, names, out).write(detail);
}

}  // namespace zeroproof
