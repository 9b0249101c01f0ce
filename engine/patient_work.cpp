#include "engine/patient_work.h"

#include <vector>

namespace zeroproof {
namespace {

using Progress = SideWork::Progress;

struct Counts {
  double working = 0.0;
  double at_barrier = 0.0;
};

// Of all ranks.
Counts meet(ZeroContext& context, Progress own) {
  Stream& stream = context.compute();
  const Tensor counts = context.runtime.memory().allocate(2, DType::float64);
  context.kernels().write(
      stream, Span::of(counts),
      {own == Progress::working ? 1.0 : 0.0, own == Progress::at_barrier ? 1.0 : 0.0});
  for (const Communicator* ranks : {&context.data, &context.tensor}) {
    if (ranks->size() == 1) continue;
    ProcessGroup& group = ranks->group();
    group.wait(group.all_reduce(stream, Span::of(counts), ReduceOp::sum), stream);
  }
  const std::vector<double> all = context.kernels().read(stream, Span::of(counts));
  return {.working = all[0], .at_barrier = all[1]};
}

}  // namespace

void run_patiently(ZeroContext& context, const SideWork::Work& work) {
  if (context.data.size() == 1 && context.tensor.size() == 1) {
    if (work)
      work({.barrier = [] {}, .on_rank = [](const std::function<void()>& task) { task(); }});
    return;
  }
  SideWork side(work);
  for (;;) {
    const Counts all = meet(context, side.wait_a_moment());
    if (all.working > 0.0) continue;
    if (all.at_barrier == 0.0) return;
    side.release();
  }
}

}  // namespace zeroproof
