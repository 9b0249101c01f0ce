#include "props/replay/unreduced_steps.h"

#include <fmt/format.h>

#include <utility>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

constexpr std::size_t kUnreduced = 0;
constexpr std::size_t kUnsynced = 1;

std::string steps_words(std::uint64_t count) {
  return count < 2 ? std::string() : fmt::format(" ({} steps, this is the first)", count);
}

}  // namespace

void UnreducedSteps::add(UnreducedStep step, const RuleFindings& story) {
  last_ = step.is_unsynced ? kUnsynced : kUnreduced;
  Kind& kind = kinds_[last_];
  if (kind.count++ > 0) return;
  kind.order = story.story_until(step.step);
  kind.first = std::move(step);
}

void UnreducedSteps::withdraw_last() {
  Kind& kind = kinds_[last_];
  if (kind.count > 0 && --kind.count == 0) kind = Kind{};
}

void UnreducedSteps::finish(bool is_local, std::uint64_t steps, std::vector<Diagnosis>& out) {
  if (is_empty()) return;
  if (is_local || averagings_ > 0) {
    out.push_back(local(steps));
    return;
  }
  if (kinds_[kUnreduced].count > 0) out.push_back(unreduced(kinds_[kUnreduced]));
  if (kinds_[kUnsynced].count > 0) out.push_back(unsynced(kinds_[kUnsynced]));
}

Diagnosis UnreducedSteps::unsynced(const Kind& kind) {
  return {.kind = "ddp.step_without_sync",
          .what = fmt::format(
              "the optimizer stepped with gradients of the backward that ended at lc {} under "
              "no_sync: they are those of this rank alone{}",
              kind.first.backward_lc, steps_words(kind.count)),
          .ranks = {kind.first.step.rank},
          .order = kind.order,
          .rule =
              "DDP: the last backward before a step runs outside no_sync, so that what was "
              "accumulated is reduced",
          .look_at =
              "the condition of no_sync(): it must be off for the boundary micro-batch, in "
              "forward too"};
}

Diagnosis UnreducedSteps::unreduced(const Kind& kind) {
  const std::vector<std::string>& params = kind.first.params;
  return {.kind = "ddp.step_without_reduction",
          .what = fmt::format(
              "the optimizer stepped at lc {} with gradients that no collective had "
              "carried, of {}: {}{}",
              kind.first.step.lc, listed(params), kind.first.cause, steps_words(kind.count)),
          .ranks = {kind.first.step.rank},
          .order = kind.order,
          .rule =
              "data parallelism: every gradient that a step uses is reduced over the ranks, or "
              "the replicas drift apart",
          .look_at = kind.first.look_at,
          .parameter = params.size() == 1 ? params.front() : std::string()};
}

Diagnosis UnreducedSteps::local(std::uint64_t steps) const {
  const std::size_t which = kinds_[kUnreduced].count > 0 ? kUnreduced : kUnsynced;
  const Kind& kind = kinds_[which];
  return {.kind = "ddp.local_steps",
          .gravity = Gravity::note,
          .what = fmt::format("{} of {} steps used gradients of this rank alone: the job averages "
                              "parameters instead",
                              kinds_[kUnreduced].count + kinds_[kUnsynced].count, steps),
          .ranks = {kind.first.step.rank},
          .order = kind.order,
          .rule = "local SGD: ranks step alone and average their parameters now and then",
          .look_at = "the period of the averaging, if steps of single ranks are not meant"};
}

}  // namespace zeroproof
