#include "props/replay/replica_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "props/replay/declared_difference.h"
#include "props/replay/rank_lockstep.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

// What a framework promises of replicas. DDP reduces its buckets in bucket order, whatever the
// order of the hooks. FSDP2 reduces a unit at a time, and the collectives show the order of units.
// ZeRO 1 and 2 pack gradients into a bucket in the order of their hooks, so that another order
// adds up gradients of different parameters; stage 3 sorts each bucket first.
struct ReplicaRule {
  Framework framework;
  // False where collectives show it, a rank records its shard, or ranks may hold other experts.
  bool compares_names_and_shapes = false;
};

constexpr ReplicaRule kReplicaRules[] = {
    {Framework::ddp, true}, {Framework::fsdp2, false}, {Framework::deepspeed, false}};

const ReplicaRule* rule_of(const RankDigest& digest) {
  const auto at =
      std::find_if(std::begin(kReplicaRules), std::end(kReplicaRules),
                   [&](const ReplicaRule& rule) { return rule.framework == digest.framework(); });
  return at == std::end(kReplicaRules) ? nullptr : at;
}

bool orders_hooks(const RankDigest& digest) {
  return digest.framework() == Framework::deepspeed && (digest.stage() == 1 || digest.stage() == 2);
}

using Replicas = std::vector<const RunMember*>;

// Whether a group smaller than the world was used: then ranks may hold different models.
bool uses_subgroups(const RankDigest& digest, std::size_t world) {
  const auto& lanes = digest.collectives();
  return std::any_of(lanes.begin(), lanes.end(), [&](const CollectiveLane& lane) {
    return !lane.members ? lane.group != "world"
                         : lane.members->size() > 1 && lane.members->size() < world;
  });
}

// Sets of ranks that hold the same model: by the group that their wrappers name, else all ranks
// where every group that was used is the whole world.
std::vector<Replicas> replica_sets(const std::vector<RunMember>& members) {
  std::map<std::pair<std::string, std::vector<std::int32_t>>, Replicas> by_group;
  Replicas all;
  std::set<std::int32_t> ranks;
  for (const RunMember& member : members) ranks.insert(member.rank);
  for (const RunMember& member : members) {
    const RankDigest& digest = *member.digest;
    if (rule_of(digest) == nullptr) continue;
    if (digest.data_group().empty()) {
      const auto world = static_cast<std::size_t>(*ranks.rbegin()) + 1;
      if (uses_subgroups(digest, world) || digest.message_count() > 0) return {};
      all.push_back(&member);
      continue;
    }
    const auto lane =
        std::find_if(digest.collectives().begin(), digest.collectives().end(),
                     [&](const CollectiveLane& one) { return one.group == digest.data_group(); });
    const bool is_known = lane != digest.collectives().end() && lane->members;
    by_group[{digest.data_group(), is_known ? *lane->members : std::vector<std::int32_t>{}}]
        .push_back(&member);
  }
  std::vector<Replicas> sets;
  if (all.size() > 1) sets.push_back(std::move(all));
  for (auto& [group, replicas] : by_group)
    if (replicas.size() > 1) sets.push_back(std::move(replicas));
  return sets;
}

// The ranks by a value; the most frequent one is the reference, of equals that of the lowest rank.
template <class ValueOf>
std::pair<Replicas, Replicas> split(const Replicas& replicas, ValueOf value_of) {
  std::map<decltype(value_of(*replicas.front())), Replicas> by_value;
  for (const RunMember* member : replicas) by_value[value_of(*member)].push_back(member);
  std::vector<Replicas> sets;
  for (auto& [value, set] : by_value) sets.push_back(std::move(set));
  std::sort(sets.begin(), sets.end(), [](const Replicas& a, const Replicas& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front()->rank < b.front()->rank;
  });
  return {sets.front(), sets.size() > 1 ? sets[1] : Replicas{}};
}

std::vector<std::int32_t> ranks_of(const Replicas& replicas) {
  std::vector<std::int32_t> ranks;
  for (const RunMember* member : replicas) ranks.push_back(member->rank);
  return ranks;
}

Diagnosis begin(std::string kind, Gravity gravity, const Replicas& reference, const Replicas& odd) {
  Diagnosis found{.kind = std::move(kind), .gravity = gravity, .ranks = ranks_of(odd)};
  found.files = {std::string(reference.front()->path)};
  for (const RunMember* member : odd) found.files.emplace_back(member->path);
  return found;
}

struct DeclaredKey {
  std::uint64_t trained = 0;
  std::uint64_t shapes = 0;
  std::uint64_t in_order = 0;
  auto operator<=>(const DeclaredKey&) const = default;
};

// Only a wrapper's record says which parameters it ignores.
bool compares_names(const RankDigest& digest) {
  return rule_of(digest)->compares_names_and_shapes && digest.has_wrapper();
}

DeclaredKey declared_key(const RankDigest& digest) {
  const DeclaredParameters& declared = digest.parameters();
  if (!compares_names(digest)) return {declared.trained, 0, 0};
  return {declared.trained, declared.shapes, declared.in_order};
}

bool has_same_names(const RunMember& a, const RunMember& b) {
  return a.digest->parameters().names == b.digest->parameters().names;
}

void compare_parameters_of(const Replicas& replicas, ReplicaComparison& out) {
  const bool is_known = std::all_of(replicas.begin(), replicas.end(), [](const RunMember* member) {
    return member->digest->parameters().count > 0;
  });
  if (!is_known) return;  // a rank that died before its first forward declares none
  const auto [reference, odd] =
      split(replicas, [](const RunMember& member) { return declared_key(*member.digest); });
  if (odd.empty()) {
    out.checked.push_back(
        fmt::format("{} parameters", reference.front()->digest->parameters().count));
    return;
  }
  const bool by_names = compares_names(*odd.front()->digest);
  if (!by_names && !has_same_names(*reference.front(), *odd.front())) return;
  const DeclaredDifference difference = declared_difference(
      std::string(reference.front()->path), std::string(odd.front()->path), by_names);
  if (difference.text.empty()) return;
  Diagnosis found = begin("ranks.parameters_differ", Gravity::defect, reference, odd);
  found.what =
      fmt::format("replicas of one model differ: on {} {}, compared with {}",
                  rank_words(ranks_of(odd)), difference.text, rank_words(ranks_of(reference)));
  found.parameter = difference.parameter;
  found.rule =
      "data parallelism: every rank holds the same parameters, in the same order, and trains the "
      "same ones";
  found.look_at =
      "what builds or freezes the model on some ranks only: a branch on the rank, an adapter, a "
      "checkpoint that one rank loaded, requires_grad after wrapping";
  out.found.push_back(std::move(found));
}

void compare_steps_of(const Replicas& replicas, const std::function<bool()>& should_stop,
                      ReplicaComparison& out) {
  Replicas whole;
  for (const RunMember* member : replicas) {
    const RankDigest& digest = *member->digest;
    if (!digest.lost().steps.empty()) {
      out.skipped.push_back("optimizer steps: " + digest.lost().steps);
      return;
    }
    if (digest.may_have_waited_since(0)) continue;  // its steps end where it ended
    if (digest.decisions().size() > 0) return;      // P57 compares decisions to step
    whole.push_back(member);
  }
  if (whole.size() < 2) return;
  const auto [reference, odd] =
      split(whole, [](const RunMember& member) { return member.digest->steps().size(); });
  const std::uint64_t usual = reference.front()->digest->steps().size();
  if (odd.empty()) {
    if (usual > 0) out.checked.push_back(fmt::format("{} optimizer steps", usual));
    return;
  }
  // A rank that ran fewer backwards had less data (DDP's join): its steps end with them.
  if (odd.front()->digest->hooks().size() != reference.front()->digest->hooks().size()) return;
  const RankLane lane{.kind = RankLane::Kind::steps};
  const auto at =
      first_difference({std::string(odd.front()->path), lane},
                       {std::string(reference.front()->path), lane}, {.should_stop = should_stop});
  Diagnosis found = begin("ranks.steps_differ", Gravity::defect, reference, odd);
  found.what =
      fmt::format("{} took {} optimizer steps, {} {}", rank_words(ranks_of(odd)),
                  odd.front()->digest->steps().size(), rank_words(ranks_of(reference)), usual);
  if (at) {
    found.what += fmt::format("; they part after step {}", at->agreed);
    for (const auto* items : {&at->other, &at->mine})
      if (!items->empty()) found.order.push_back(items->front().moment);
    if (!found.order.empty()) found.order.back().is_bad = true;
    if (at->other_before) found.last_common = at->other_before->moment;
  }
  found.rule = "data parallelism: replicas stay equal only if every rank takes every step";
  found.look_at =
      "the branch around optimizer.step(): a skipped step (NaN, accumulation, an empty batch) must "
      "be decided together on all ranks";
  out.found.push_back(std::move(found));
}

void compare_hooks_of(const Replicas& replicas, const std::function<bool()>& should_stop,
                      ReplicaComparison& out) {
  if (!orders_hooks(*replicas.front()->digest)) return;
  for (const RunMember* member : replicas)
    if (const std::string& lost = member->digest->lost().hooks; !lost.empty()) {
      out.skipped.push_back("the order of gradient hooks: " + lost);
      return;
    }
  const auto [reference, odd] =
      split(replicas, [](const RunMember& member) { return member.digest->hooks().hash(); });
  if (odd.empty()) {
    if (reference.front()->digest->hooks().size() > 0)
      out.checked.emplace_back("the order of gradient hooks");
    return;
  }
  const RankLane lane{.kind = RankLane::Kind::gradient_hooks};
  const auto at =
      first_difference({std::string(odd.front()->path), lane},
                       {std::string(reference.front()->path), lane}, {.should_stop = should_stop});
  if (!at || at->mine.empty() || at->other.empty()) return;  // one only ends earlier
  Diagnosis found = begin("hooks.order_differs", Gravity::hazard, reference, odd);
  found.order = {at->other.front().moment, at->mine.front().moment};
  found.order.back().is_bad = true;
  found.parameter = at->mine.front().parameter;
  found.what =
      fmt::format("gradients form in another order: after the same beginning {} has {}, {} has {}",
                  rank_words(ranks_of(reference)), at->other.front().parameter,
                  rank_words(ranks_of(odd)), found.parameter);
  if (at->other_before) found.last_common = at->other_before->moment;
  found.rule =
      "ZeRO 1 and 2 pack gradients into buckets in the order of their hooks: another order adds up "
      "gradients of different parameters";
  found.look_at = "modules that are used in another order, or not at all, on one of the ranks";
  out.found.push_back(std::move(found));
}

}  // namespace

ReplicaComparison compare_declared_parameters(const std::vector<RunMember>& members) {
  ReplicaComparison out;
  for (const Replicas& replicas : replica_sets(members)) {
    compare_parameters_of(replicas, out);
    if (!out.found.empty()) break;
  }
  return out;
}

ReplicaComparison compare_steps_and_hooks(const std::vector<RunMember>& members,
                                          const std::function<bool()>& should_stop) {
  ReplicaComparison out;
  for (const Replicas& replicas : replica_sets(members)) {
    compare_steps_of(replicas, should_stop, out);
    compare_hooks_of(replicas, should_stop, out);
    if (!out.found.empty()) break;
  }
  return out;
}

}  // namespace zeroproof
