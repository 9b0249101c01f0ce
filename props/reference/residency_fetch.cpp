// Fetches: docs/spec/zero/stage3.md 3.3, 3.5, 3.7 and 3.11.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/reference/methods.h"
#include "props/reference/residency.h"

namespace zeroproof::reference {

// 3.5: broadcasts of rank 0 while the order is new, then none.
void Residency::judge_comparisons(const HookEvent& event) {
  if (world_.is_ours())
    ledger_.judge(Rule::order_compared, comparisons_ <= order_.comparisons(), event.lc, [&] {
      return fmt::format("ranks compare the order of modules by {} broadcasts, and {} are enough",
                         comparisons_, order_.comparisons());
    });
  order_.restart([&](Id module) { return uses_.parameters(module); });
  is_order_lost_ = false;
  if (scene_.graph_tasks() == 0) {
    failure_.reset();
    uses_.shrink_to(0);
  }
}

void Residency::judge_module(const HookEvent& event, Id module) {
  const Module& row = world_.modules[module];
  const std::optional<Id> expected = std::exchange(expected_module_, std::nullopt);
  if (!world_.is_ours()) return;
  ledger_.judge(Rule::module_fetched, !row.is_below_leaf, event.lc, [&] {
    return fmt::format("{} fetches for itself, and lies below a leaf module", row.name);
  });
  if (!event.is_forward) return;
  if (expected && scene_.is_in(calls::kForward))
    ledger_.judge(Rule::module_fetched, *expected == module, event.lc, [&] {
      return fmt::format("{} runs, and {} fetches", world_.modules[*expected].name, row.name);
    });
  if (module != 0) return;
  ledger_.judge(Rule::order_begun, resets_ == 1, event.lc, [&] {
    return fmt::format("a forward of the root begins the order of modules {} times", resets_);
  });
  resets_ = 0;
}

void Residency::judge_given_up(const HookEvent& event, Id module) {
  has_new_external_ = false;
  const std::optional<FetchOrder> before = std::exchange(given_up_, std::nullopt);
  if (!before || !is_judging(event)) return;
  ledger_.judge(Rule::order_kept, !before->expects(module), event.lc, [&] {
    return fmt::format("{} is next in the recorded order, which is given up all the same",
                       world_.modules[module].name);
  });
}

void Residency::begin_fetch(const HookEvent& event) {
  const auto module = index_.module(event.name);
  if (!module) return;
  judge_module(event, *module);
  judge_given_up(event, *module);
  if (event.transforms == 0) is_behind_transform_ = false;
  reclaimed_.clear();
  const ModuleCall call{*module, event.index};
  fetch_ = Fetch{.module = *module, .call = call, .is_forward = event.is_forward, .lc = event.lc};
  for (Id id = 0; id < states_.size(); ++id)
    if (!is_free(id)) fetch_->before.insert(id);
  if (!order_.visit(*module)) {
    if (is_judging(event) && world_.is_ours() && !is_order_lost_)
      ledger_.find(Rule::order_left, event.lc,
                   fmt::format("{} is not next in the recorded order, which goes on",
                               world_.modules[*module].name));
    order_.invalidate();
    is_order_lost_ = true;
  }
  ledger_.applied(Rule::order_left);
  const bool is_recompute = !event.graph_task.is_none();
  if (!event.is_forward) {
    uses_.begin_backward(call);
    retained_.begin_backward(call, event.call, scene_.outermost_task());
    return;
  }
  if (uses_.depth() == 0 && !is_recompute) ++forwards_;
  uses_.begin_forward(call);
  retained_.begin_forward(call, forwards_, is_recompute || event.transforms > 0);
  if (!is_recompute) return;
  for (const Id id : uses_.parameters(*module))
    if (!parameter(id).requires_grad) uses_.lend(id);
}

void Residency::end_fetch(const HookEvent& event) {
  if (!fetch_) return;
  const Fetch fetch = *std::exchange(fetch_, std::nullopt);
  if (world_.unseen.reads_elsewhere && !order_.is_complete()) adopt_externals(fetch);
  const Ids own = uses_.parameters(fetch.module);
  std::vector<Ids> gathers = judged_gathers(fetch);
  std::set<Id> present = fetch.before;
  const bool is_judged = is_judging(event) && world_.is_ours();
  if (is_judged) judge_needed(fetch, gathers, present);
  for (const Id id : own) present.insert(id);
  if (order_.is_complete()) {
    if (!order_.take_for(own)) is_order_lost_ = true;
    if (is_judged && !is_order_lost_) {
      judge_ahead(fetch, gathers, present);
    } else {
      is_order_lost_ = true;
    }
  } else if (is_judged && !is_order_lost_) {
    ledger_.judge(Rule::gather_ahead, gathers.empty(), event.lc, [&] {
      return fmt::format("the fetch of {} gathers {} ahead, and no order is recorded",
                         world_.modules[fetch.module].name,
                         list({gathers.front().begin(), gathers.front().end()}));
    });
  }
  order_.advance();
}

// 3.8. Without an order a fetch gathers only what its module uses.
void Residency::adopt_externals(const Fetch& fetch) {
  for (const Ids& ids : fetch.gathers)
    for (const Id id : ids)
      if (parameter(id).is_read_elsewhere) uses_.add_external(fetch.module, id);
}

// Without those that other modules may read: which fetch gathers them is not known.
std::vector<Residency::Ids> Residency::judged_gathers(const Fetch& fetch) const {
  std::vector<Ids> gathers = fetch.gathers;
  if (!world_.unseen.reads_elsewhere) return gathers;
  for (Ids& ids : gathers)
    std::erase_if(ids, [&](Id id) { return parameter(id).is_read_elsewhere; });
  std::erase_if(gathers, [](const Ids& ids) { return ids.empty(); });
  return gathers;
}

// 3.3, steps 3 and 4; what is kept for this backward comes first and without a collective (3.11).
void Residency::judge_needed(const Fetch& fetch, std::vector<Ids>& gathers, std::set<Id>& present) {
  const std::string& module = world_.modules[fetch.module].name;
  std::set<Id> needed;
  for (const Id id : uses_.parameters(fetch.module)) {
    const bool is_open = world_.unseen.reads_elsewhere && parameter(id).is_read_elsewhere;
    if (!present.contains(id) && elements(id) > 0 && !is_open) needed.insert(id);
  }
  if (!reclaimed_.empty()) {
    judge_reclaimed(fetch, present);
    std::erase_if(needed, [&](Id id) { return reclaimed_.contains(id); });
    reclaimed_.clear();
    if (!gathers.empty()) gathers.erase(gathers.begin());
  }
  if (needed.empty()) return;
  merge_kept(fetch, gathers);
  const std::set<Id> first =
      gathers.empty() ? std::set<Id>() : std::set<Id>(gathers[0].begin(), gathers[0].end());
  ledger_.judge(Rule::gather_needed, first == needed, fetch.lc, [&] {
    return fmt::format("the fetch of {} gathers {}; it needs {}", module, list(first),
                       list(needed));
  });
  judge_kept(fetch, first);
  if (!gathers.empty()) gathers.erase(gathers.begin());
}

// One rank gathers without a collective, so that what it has kept looks like what it gathers.
void Residency::merge_kept(const Fetch& fetch, std::vector<Ids>& gathers) const {
  const bool may_keep = world_.unseen.keeps_graphs && retained_.may_keep(fetch.call);
  if (world_.ranks > 1 || fetch.is_forward || !may_keep || gathers.size() < 2) return;
  const Ids own = uses_.parameters(fetch.module);
  const auto is_own = [&](Id id) { return std::ranges::find(own, id) != own.end(); };
  if (!std::ranges::all_of(gathers[1], is_own)) return;
  gathers[0].insert(gathers[0].end(), gathers[1].begin(), gathers[1].end());
  gathers.erase(gathers.begin() + 1);
}

void Residency::judge_kept(const Fetch& fetch, const std::set<Id>& gathered) {
  if (fetch.is_forward || world_.ranks == 1) return;
  ledger_.applied(Rule::kept_reused);
  if (!retained_.is_kept(fetch.call)) return;
  for (const Id id : gathered)
    if (retained_.is_kept_parameter(id) && !parameter(id).is_persistent && !states_[id].is_returned)
      ledger_.find(Rule::kept_reused, fetch.lc,
                   fmt::format("{} is gathered for the second backward of {}, whose graph kept it",
                               parameter(id).name, world_.modules[fetch.module].name));
}

void Residency::judge_reclaimed(const Fetch& fetch, std::set<Id>& present) {
  const std::string& module = world_.modules[fetch.module].name;
  const bool may_keep =
      !fetch.is_forward && world_.unseen.keeps_graphs && retained_.may_keep(fetch.call);
  ledger_.judge(Rule::whole_unasked, may_keep, fetch.lc, [&] {
    return fmt::format("{} is whole for {} without a gather, and no graph has kept it",
                       list(reclaimed_), module);
  });
  std::int64_t kept = 0;
  for (const Id id : reclaimed_) {
    kept = retained_.reclaim(id, scene_.outermost_task());
    present.insert(id);
  }
  ledger_.judge(Rule::kept_bound, kept <= config().stage3_max_live_parameters, fetch.lc, [&] {
    return fmt::format("{} elements were kept for a graph, and {} may be live", kept,
                       config().stage3_max_live_parameters);
  });
}

// 3.3, step 6. Where graphs may be kept, their parameters may take any part of the room.
void Residency::judge_ahead(const Fetch& fetch, const std::vector<Ids>& gathers,
                            const std::set<Id>& present) {
  const std::int64_t bucket = config().stage3_prefetch_bucket_size;
  const std::int64_t room_max = config().stage3_max_live_parameters - sum(present);
  std::int64_t kept_max = 0;
  if (world_.unseen.keeps_graphs)
    for (Id id = 0; id < states_.size(); ++id)
      if (!present.contains(id) && !parameter(id).is_persistent && retained_.may_be_kept(id))
        kept_max += elements(id);
  kept_max = std::min(kept_max, config().stage3_max_live_parameters);
  const auto take = [&](FetchOrder& order, std::int64_t room) {
    if (bucket <= 0) return Ids();
    return order.take_ahead(
        std::min(room, bucket), [&](Id id) { return !present.contains(id); },
        [&](Id id) { return elements(id); });
  };
  FetchOrder tight = order_;
  const Ids least = take(tight, room_max - kept_max);
  const Ids most = take(order_, room_max);
  Ids actual;
  for (const Ids& ids : gathers) actual.insert(actual.end(), ids.begin(), ids.end());
  std::ranges::sort(actual);
  const std::string& module = world_.modules[fetch.module].name;
  const auto set = [](const Ids& ids) { return std::set<Id>(ids.begin(), ids.end()); };
  const bool is_beyond = !std::ranges::includes(most, actual);
  const bool is_over = is_beyond && sum(set(actual)) > std::min(room_max, bucket);
  ledger_.judge(Rule::prefetch_bound, !is_over, fetch.lc, [&] {
    return fmt::format("the fetch of {} gathers {} elements ahead, of {}; there is room for {}",
                       module, sum(set(actual)), list(set(actual)), std::min(room_max, bucket));
  });
  if (world_.unseen.reads_elsewhere) {
    is_order_lost_ = true;
    return;
  }
  const bool is_right = !is_beyond && std::ranges::includes(actual, least) && gathers.size() <= 1;
  ledger_.judge(Rule::gather_ahead, is_over || is_right, fetch.lc, [&] {
    return fmt::format("the fetch of {} gathers {} ahead; the recorded order has {} next", module,
                       list(set(actual)), list(set(most)));
  });
  is_order_lost_ = !order_.has_taken_as(tight);  // which of both rooms it had is not known
}

}  // namespace zeroproof::reference
