#include "props/reference/step_log.h"
#include "props/reference/methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/reference/flat_layout.h"

namespace zeroproof::reference {
void StepLog::on_event(const HookEvent& event) {
  const std::string_view name = text(event.name);
  if (event.kind == EventKind::engine_call && name == calls::kModelStep) {
    agreements_ = 0;
    gathered_.clear();
  }
  if (event.kind == EventKind::coll_issue && scene_.is_in(calls::kModelStep)) see_collective(event);
  if (event.kind == EventKind::mark && scene_.is_in(calls::kModelStep) &&
      (name == "step_applied" || name == "step_skipped"))
    judge(event, name == "step_applied");
}

void StepLog::see_collective(const HookEvent& event) {
  const std::string_view operation = text(event.name);
  if (operation == "all_reduce") ++agreements_;
  if (config().stage < 3 && operation != "all_reduce")
    gathered_.push_back({std::string(operation), event.bytes});
}

// Overflow where a loss scale, or bf16 with its check, makes one possible; then the norm. In stage
// 0 each rank knows both, but a float32 model that clips asks all the same.
int StepLog::agreements_max() const {
  const bool has_scale =
      config().fp16.enabled || world_.unseen.sets_scale ||
      (config().torch_autocast.enabled && config().torch_autocast.dtype == DType::float16);
  if (config().stage == 0)
    return config().model_dtype() == DType::float32 && config().gradient_clipping > 0.0 ? 1 : 0;
  const bool checks_bf16 =
      config().stage < 3 && config().bf16.enabled && config().bf16.check_grad_overflow;
  return (has_scale || checks_bf16 ? 1 : 0) + 1;
}

// With overlap the gather of one part runs beside the update of the next;
// docs/explanation/engine.md.
bool StepLog::gathers_in_parts() const {
  return config().has_overlap_comm() && !config().is_offloaded();
}

std::vector<StepLog::Gather> StepLog::gathers() const {
  std::vector<Gather> all;
  if (config().stage == 0 || config().stage == 3 || world_.ranks == 1) return all;
  const std::int64_t item = item_bytes(config().model_dtype());
  const std::int64_t most =
      std::max<std::int64_t>(config().allgather_bucket_size / world_.ranks, 1);
  for (int group = 0; group < world_.groups(); ++group) {
    const FlatLayout layout(world_, group, world_.ranks);
    if (layout.padded() == 0) continue;
    if (!gathers_in_parts() || layout.slice() <= most) {
      all.push_back({"all_gather_into_tensor", layout.padded() * item});
      continue;
    }
    for (std::int64_t begin = 0; begin < layout.slice(); begin += most)
      for (int rank = 0; rank < world_.ranks; ++rank)
        all.push_back({"broadcast", std::min(most, layout.slice() - begin) * item});
  }
  return all;
}

void StepLog::judge(const HookEvent& event, bool is_applied) {
  if (!world_.is_ours()) return ledger_.leave_collective(Freedom::other_dialect);
  ledger_.judge(Rule::step_agreement, agreements_ <= agreements_max(), event.lc, [&] {
    return fmt::format("a step asks all ranks {} times, and {} are enough", agreements_,
                       agreements_max());
  });
  const std::vector<Gather> expected = is_applied ? gathers() : std::vector<Gather>();
  const auto describe = [](const std::vector<Gather>& them) {
    if (them.empty()) return std::string("no piece");
    return fmt::format("{} pieces that begin with a {} of {} bytes", them.size(),
                       them.front().operation, them.front().bytes);
  };
  ledger_.judge(Rule::step_gathers, gathered_ == expected, event.lc, [&] {
    return fmt::format("a step gathers {}, and its values need {}", describe(gathered_),
                       describe(expected));
  });
}

}  // namespace zeroproof::reference
