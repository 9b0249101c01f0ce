// Releases, and what is left: docs/spec/zero/stage3.md 3.4, 3.6 and 3.10 to 3.13.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/reference/methods.h"
#include "props/reference/residency.h"

namespace zeroproof::reference {

// What no module's end and no epilogue frees.
bool Residency::may_stay(Id id) const {
  const State& state = states_[id];
  return parameter(id).is_persistent || state.is_returned || state.is_users || elements(id) == 0;
}

bool Residency::is_left_open(Id id) const {
  return uses_.is_unsure(id) || world_.unseen.gathers_inside ||
         (world_.unseen.reads_elsewhere && parameter(id).is_read_elsewhere);
}

// What is under way ends without an event of its own.
void Residency::end_backwards() {
  for (const ModuleCall& call : uses_.backwards()) retained_.end_backward(call);
  uses_.end_backwards(scene_.graph_tasks() > 0);
}

void Residency::begin_release(const HookEvent& event) {
  const auto module = index_.module(event.name);
  if (!module) return;
  const Ids own = uses_.parameters(*module);
  std::set<Id> held(own.begin(), own.end());
  Ids candidates;
  for (const Id id : own)
    if (!parameter(id).is_persistent) candidates.push_back(id);
  const auto parameters_of = [&](Id it) { return uses_.parameters(it); };
  std::set<Id> freed = order_.freed(candidates, config().stage3_max_reuse_distance, parameters_of,
                                    [&](Id id) { return elements(id); });
  release_.reset();
  const bool is_sure = !uses_.is_unsure_module(*module);
  const ModuleCall call{*module, event.index};
  if (event.is_forward) {
    uses_.end_forward(call);
    has_root_ended_ = has_root_ended_ || *module == 0;
    if (!scene_.is_in("z3.post_forward")) {  // an exception ends it
      abandoned_.insert(own.begin(), own.end());
      return;
    }
  } else {
    const auto ended = uses_.end_backward(call);
    if (ended || !call.is_known()) retained_.end_backward(call);
    if (!ended) return;
    for (const Id id : ended->recomputed) {
      held.insert(id);
      if (!parameter(id).is_persistent) freed.insert(id);
    }
  }
  release_ = Release{.module = *module};
  release_->is_judged = is_judging(event) && world_.is_ours() && is_sure;
  for (const Id id : held) {
    const bool is_in_use = uses_.is_used(id) || states_[id].where != Where::whole;
    if (may_stay(id) || is_left_open(id) || is_in_use) continue;
    if (freed.contains(id)) release_->expected.insert(id);
    if (!freed.contains(id)) release_->soon.insert(id);
  }
}

void Residency::end_release(const HookEvent& event) {
  if (!release_) return;
  const Release release = *std::exchange(release_, std::nullopt);
  if (!release.is_judged || !is_judging(event) || is_order_lost_) return;
  const std::string& module = world_.modules[release.module].name;
  std::set<Id> left;
  for (const Id id : release.expected)
    if (!release.freed.contains(id)) left.insert(id);
  ledger_.judge(Rule::free_after_module, left.empty(), event.lc, [&] {
    return fmt::format("{} stays whole after {} has ended, and no use within {} elements needs it",
                       list(left), module, config().stage3_max_reuse_distance);
  });
  std::set<Id> lost;
  for (const Id id : release.soon)
    if (release.freed.contains(id)) lost.insert(id);
  ledger_.judge(Rule::needed_soon, lost.empty(), event.lc, [&] {
    return fmt::format("the end of {} frees {}, which the recorded order needs within {} elements",
                       module, list(lost), config().stage3_max_reuse_distance);
  });
}

// 3.10: before anything else happens.
void Residency::judge_operations(const HookEvent& event) {
  const bool is_over = event.kind == EventKind::zparam_gather_begin ||
                       event.kind == EventKind::zmod_fetch ||
                       event.kind == EventKind::zmod_release || event.kind == EventKind::gt_end;
  if (!is_over) return;
  for (Id id = 0; id < states_.size(); ++id) {
    if (!std::exchange(states_[id].is_operations, false)) continue;
    if (!is_judging(event) || event.is_exceptional() || uses_.is_used(id) || is_left_open(id))
      continue;
    ledger_.find(
        Rule::free_after_operation, event.lc,
        fmt::format("{} stays whole after the operation that gathered it", parameter(id).name));
  }
  ledger_.applied(Rule::free_after_operation);
}

void Residency::judge_all_free(const HookEvent& event, Rule rule, std::string_view when) {
  if (event.transforms > 0) return;
  const bool is_reset = text(event.name) == calls::kResetAll;
  std::set<Id> left;
  for (Id id = 0; id < states_.size(); ++id) {
    if (is_free(id) || elements(id) == 0) continue;
    const bool stays = may_stay(id) || before_transform_.contains(id) ||
                       uses_.is_used_by_forward(id) || world_.unseen.gathers_inside;
    if (is_reset || !stays) left.insert(id);
  }
  ledger_.judge(rule, left.empty(), event.lc,
                [&] { return fmt::format("{} is whole {}", list(left), when); });
  if (rule != Rule::free_after_backward || !world_.is_ours()) return;
  const bool is_idle = scene_.graph_tasks() == 0 && uses_.depth() == 0;
  if (is_idle)
    ledger_.check(Rule::gather_finished, !gathers_.has_outstanding(), event.lc,
                  "an asynchronous gather has no end after the epilogue");
}

// 3.5: what was gathered ahead by an order goes with it.
void Residency::judge_under_way(const HookEvent& event) {
  const std::set<Id> under_way = std::exchange(under_way_, {});
  if (!world_.is_ours() || !is_judging(event)) return;
  std::set<Id> left;
  for (const Id id : under_way)
    if (!is_free(id) && !may_stay(id) && !uses_.is_used(id) && !is_left_open(id)) left.insert(id);
  ledger_.judge(Rule::order_left, left.empty(), event.lc, [&] {
    return fmt::format("{} was gathered ahead, and stays whole without the order that needed it",
                       list(left));
  });
}

// An exception ends a module as well (3.2, Ours).
void Residency::judge_abandoned(const HookEvent& event) {
  const std::set<Id> abandoned = std::exchange(abandoned_, {});
  if (!world_.is_ours()) return;
  std::set<Id> left;
  for (const Id id : abandoned)
    if (!is_free(id) && !may_stay(id) && !uses_.is_used(id) && !is_left_open(id)) left.insert(id);
  ledger_.judge(Rule::free_after_abort, left.empty(), event.lc, [&] {
    return fmt::format("{} stays whole after an exception in its module", list(left));
  });
}

void Residency::judge_persistent(const HookEvent& event, std::string_view when) {
  if (!world_.is_ours()) return;
  std::set<Id> missing;
  for (Id id = 0; id < states_.size(); ++id)
    if (parameter(id).is_persistent && elements(id) > 0 && states_[id].where != Where::whole)
      missing.insert(id);
  ledger_.judge(Rule::persistent_back, missing.empty(), event.lc, [&] {
    return fmt::format("{} is persistent, and not whole after {}", list(missing), when);
  });
}

}  // namespace zeroproof::reference
