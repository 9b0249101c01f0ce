// What releases of DeepSpeed do otherwise in stages 1 and 2 (H15, H21, N5, N8): which gradients
// they keep and copy.
#include "engine/zero/stage12.h"

namespace zeroproof {

// N5: reductions add straight into the partition that the step reads, and the step alone drops it.
bool Stage12Optimizer::keeps_partition() const {
  return context_.upstream.zero_grad_keeps_partition && context_.config.has_float32_partition();
}

// N8: unmanaged, the step finds what the last window left of a parameter that this one has not
// used.
bool Stage12Optimizer::repeats_unused() const {
  return context_.upstream.unmanaged_offload_repeats && context_.config.is_offloaded() &&
         !context_.config.managed_gradient_accumulation;
}

// Neither the CPU accumulators nor what the optimizer reads is cleared (H15, N8).
bool Stage12Optimizer::keeps_offloaded() const {
  return context_.config.is_offloaded() &&
         (context_.upstream.offload_never_cleared || repeats_unused());
}

bool Stage12Optimizer::is_upstream_offload() const {
  const bool copies =
      context_.config.is_offloaded() && context_.upstream.offload_copies_boundary_only;
  return copies || keeps_offloaded();
}

// Upstream's CPU offload (docs/spec/zero.md 2.18a): accumulators that are not cleared (H15), a copy
// for the optimizer of what fires at the boundary alone (H21), and slices that only a use in the
// window begins again (N8).
void Stage12Optimizer::commit_as_upstream_offload(FlatGroup& group) {
  Kernels& kernels = context_.kernels();
  Stream& stream = context_.compute();
  const bool copies_boundary = context_.upstream.offload_copies_boundary_only;
  const Span copy = copies_boundary ? group.open_boundary_copy() : Span{};
  if (!group.has_pending()) return;
  const Span window = group.add_to_accumulator();
  const Span pending = group.open_pending();
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    const FlatRange owned = group.owned(i);
    if (owned.elements == 0 || !gradients_.progress(*group.parameters()[i]).has_contributed)
      continue;
    const std::int64_t begin = owned.begin - group.own().begin;
    const Span sum = window.part(begin, owned.elements);
    const auto id = static_cast<std::size_t>(group.parameters()[i]->id.value);
    const bool is_first =
        context_.upstream.offload_never_cleared ? micro_ == 0 : repeats_unused() && !is_used_[id];
    if (is_first) {
      kernels.copy(stream, sum, pending.part(begin, owned.elements));
    } else {
      kernels.add(stream, sum, pending.part(begin, owned.elements));
    }
    if (context_.is_boundary && copies_boundary)
      kernels.copy(stream, copy.part(begin, owned.elements), sum);
  }
  group.drop_pending();
}

}  // namespace zeroproof
