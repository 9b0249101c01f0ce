#include "props/replay/consequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace zeroproof {
namespace {

constexpr std::uint64_t kNear = 64;  // events between a cause and what follows at once

struct Consequence {
  std::string_view cause;  // kinds
  std::string_view effect;
  bool is_mentioned = false;  // the effect is added to the words of its cause
};

// "process.exception" here is one that is about the rank itself.
constexpr std::array<Consequence, 19> kConsequences = {{
    {"hook.undefined_gradient", "backward.never_left", true},
    {"hook.undefined_gradient", "transform.unsupported"},
    {"zero3.retained_graph_released", "backward.never_left", true},
    {"zero3.retained_graph_released", "transform.unsupported"},
    {"zero3.transform_unsupported", "backward.never_left", true},
    {"zero3.transform_unsupported", "transform.unsupported"},
    {"refused_by_design", "backward.never_left", true},
    {"refused_by_design", "transform.unsupported"},
    {"hook.undefined_gradient", "process.exception", true},
    {"zero3.retained_graph_released", "process.exception", true},
    {"zero3.transform_unsupported", "process.exception", true},
    {"refused_by_design", "process.exception", true},
    {"backward.dirty_after_abort", "process.exception", true},
    {"epilogue.count", "process.exception", true},
    {"gradients.not_reduced", "process.exception", true},
    {"ddp.ready_twice", "process.exception", true},
    {"ddp.buckets_incomplete", "process.exception", true},
    {"process.exception", "process.ended_early"},
    {"ddp.step_without_reduction", "numbers.gradients_not_reduced"},
}};

// An exception or a death of a rank explains what its peers waited for.
bool is_end(const Draft& draft) {
  return (draft.diagnosis.kind == "process.exception" && !draft.is_of_peers) ||
         draft.diagnosis.kind == "process.ended_early";
}

bool is_subset(const std::vector<std::int32_t>& some, const std::vector<std::int32_t>& of) {
  return !some.empty() && std::includes(of.begin(), of.end(), some.begin(), some.end());
}

// Whether the ranks that are missing at a collective are those that have ended.
bool explains_absence(const Draft& cause, const Draft& draft) {
  return cause.diagnosis.kind == "process.exception" && !cause.is_of_peers &&
         (draft.diagnosis.kind == "collective.missing" ||
          draft.diagnosis.kind == "message.missing") &&
         is_subset(draft.diagnosis.ranks, cause.diagnosis.ranks);
}

// "Connection closed by peer" and the like say that another rank has gone or does not come.
bool explains_peers(const Draft& cause, const Draft& draft) {
  const bool is_cause = is_end(cause) || (cause.diagnosis.gravity == Gravity::defect &&
                                          (cause.diagnosis.kind.starts_with("collective.") ||
                                           cause.diagnosis.kind.starts_with("message.")));
  return draft.is_of_peers && is_cause;
}

// Findings about what the exception that ends a process left unfinished.
bool explains_remainder(const Draft& cause, const Draft& draft) {
  return cause.diagnosis.kind == "process.exception" && draft.trace == cause.trace &&
         draft.lc + kNear >= cause.lc && draft.is_after_exception;
}

bool explains_by_kind(const Draft& cause, const Draft& draft) {
  if (draft.trace == cause.trace && draft.lc + kNear < cause.lc) return false;
  const bool is_peers = draft.is_of_peers || cause.is_of_peers;
  return !is_peers && std::any_of(kConsequences.begin(), kConsequences.end(), [&](const auto& one) {
    return one.cause == cause.diagnosis.kind && one.effect == draft.diagnosis.kind;
  });
}

bool explains(const Draft& cause, const Draft& draft) {
  if (&cause == &draft || cause.run != draft.run) return false;
  return explains_absence(cause, draft) || explains_peers(cause, draft) ||
         explains_remainder(cause, draft) || explains_by_kind(cause, draft);
}

bool is_mentioned(const Draft& cause, const Draft& draft) {
  if (draft.is_of_peers) return true;
  return std::any_of(kConsequences.begin(), kConsequences.end(), [&](const Consequence& one) {
    return one.is_mentioned && one.cause == cause.diagnosis.kind &&
           one.effect == draft.diagnosis.kind;
  });
}

void mention(Draft& cause, const Draft& draft) {
  if (is_mentioned(cause, draft)) cause.diagnosis.what += "; then " + draft.diagnosis.what;
  auto& waits = cause.diagnosis.waits;
  if (explains_absence(cause, draft))
    waits.insert(waits.end(), draft.diagnosis.waits.begin(), draft.diagnosis.waits.end());
  if (explains_absence(cause, draft) && !cause.diagnosis.last_common)
    cause.diagnosis.last_common = draft.diagnosis.last_common;
}

// The draft that each follows from, by index; its own index where it is a root.
std::vector<std::size_t> roots_of(const std::vector<Draft>& drafts) {
  std::vector<std::size_t> causes(drafts.size());
  for (std::size_t at = 0; at < drafts.size(); ++at) {
    const auto cause = std::find_if(drafts.begin(), drafts.end(),
                                    [&](const Draft& one) { return explains(one, drafts[at]); });
    causes[at] = cause == drafts.end() ? at : static_cast<std::size_t>(cause - drafts.begin());
  }
  std::vector<std::size_t> roots(drafts.size());
  for (std::size_t at = 0; at < drafts.size(); ++at) {
    std::size_t root = at;
    for (std::size_t hops = 0; causes[root] != root && hops < drafts.size(); ++hops)
      root = causes[root];
    roots[at] = root;
  }
  return roots;
}

}  // namespace

std::vector<Draft> drop_consequences(std::vector<Draft> drafts,
                                     const std::set<std::string>& explained) {
  const std::vector<std::size_t> roots = roots_of(drafts);
  const auto is_told = [&](const Draft& draft) {
    return explained.contains(draft.run) &&
           (draft.diagnosis.kind == "collective.sequence_differs" ||
            draft.diagnosis.kind == "collective.gather_order_differs");
  };
  for (std::size_t at = 0; at < drafts.size(); ++at)
    if (roots[at] != at) mention(drafts[roots[at]], drafts[at]);
  std::vector<Draft> kept;
  for (std::size_t at = 0; at < drafts.size(); ++at)
    if (roots[at] == at && !is_told(drafts[at])) kept.push_back(std::move(drafts[at]));
  return kept;
}

}  // namespace zeroproof
