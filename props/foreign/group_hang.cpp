#include "props/foreign/group_hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/check.h"
#include "props/foreign/dump_words.h"
#include "props/foreign/flight_match.h"
#include "props/replay/moment.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

constexpr std::size_t kMomentsMax = 3;  // of ranks that did the same

bool includes(const std::vector<std::size_t>& all, const std::vector<std::size_t>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace

std::optional<DiagnosisMoment> CommonPlace::moment() const {
  if (one == nullptr) return std::nullopt;
  return dump_moment(*dump, *one, false);
}

Diagnosis GroupHang::diagnosis(std::string kind, const DumpedCollective& one) const {
  Diagnosis found{.kind = std::move(kind)};
  found.rule = std::string(kSameSequenceRule);
  found.last_common = last_common_.moment();
  found.collective = place_words(one);
  return found;
}

std::vector<std::int32_t> GroupHang::ranks_of(const Views& views) const {
  std::vector<std::int32_t> ranks;
  for (const std::size_t at : views) ranks.push_back(group_.views[at].dump->rank);
  return ranks;
}

GroupHang::Views GroupHang::waiting() const {
  Views found;
  for (std::size_t at = 0; at < group_.views.size(); ++at)
    if (group_.views[at].first_waiting() != nullptr) found.push_back(at);
  return found;
}

std::optional<DumpFinding> GroupHang::missing_at(std::int64_t number) const {
  Views there;
  Views absent;
  bool is_finished = false;
  for (std::size_t at = 0; at < group_.views.size(); ++at) {
    const DumpedCollective* const one = group_.views[at].at(number);
    if (one != nullptr)
      there.push_back(at);
    else if (state_.fate(at, number) == Fate::not_issued)
      absent.push_back(at);
    is_finished = is_finished || (one != nullptr && one->state == OpState::completed &&
                                  needs_all_ranks(one->shape->op));
  }
  // One that finished had all ranks in it: the other dumps were taken earlier.
  if (absent.empty() || there.empty() || is_finished) return std::nullopt;
  const bool is_waited_for = std::any_of(there.begin(), there.end(), [&](std::size_t at) {
    return group_.views[at].at(number)->state != OpState::completed;
  });
  if (!is_waited_for) return std::nullopt;
  const Views behind = state_.trailing();
  if (!behind.empty() && includes(behind, absent)) return stalled(behind, waiting());
  return missing(number, there, absent);
}

std::optional<DumpFinding> GroupHang::stuck() const {
  const Views there = waiting();
  if (const Views behind = state_.trailing(); !behind.empty()) return stalled(behind, there);
  if (there.empty()) return std::nullopt;
  if (group_.views.size() == 1) return alone(0);
  const GroupView& first = group_.views[there.front()];
  const DumpedCollective& one = *first.first_waiting();
  const std::int64_t number = one.number + first.shift;
  const bool are_together = std::all_of(there.begin(), there.end(), [&](std::size_t at) {
    const GroupView& view = group_.views[at];
    return view.first_waiting()->number + view.shift == number;
  });
  const std::size_t ranks_with_entries = static_cast<std::size_t>(
      std::count_if(group_.views.begin(), group_.views.end(),
                    [](const GroupView& view) { return !view.issued.empty(); }));
  if (!are_together || there.size() != ranks_with_entries) return std::nullopt;
  if (there.size() == 1) return alone(there.front());
  return together(there, one);
}

void GroupHang::add_moments(const Views& views, std::int64_t number, bool is_bad,
                            Diagnosis& found) const {
  for (std::size_t at = 0; at < views.size(); ++at) {
    const GroupView& view = group_.views[views[at]];
    found.files.push_back(view.dump->path);
    if (at >= kMomentsMax || view.issued.empty()) continue;
    const DumpedCollective* const one = view.at(number);
    found.order.push_back(
        dump_moment(*view.dump, one == nullptr ? *view.issued.back() : *one, is_bad));
  }
}

DumpFinding GroupHang::missing(std::int64_t number, const Views& there, const Views& absent) const {
  const DumpedCollective& missed = *group_.views[there.front()].at(number);
  Diagnosis found = diagnosis("collective.missing", missed);
  const auto away = ranks_of(absent);
  const auto here = ranks_of(there);
  found.ranks = away;
  found.what = fmt::format(
      "{} not issued number {} of {}, {}: {} there for it", ranks_with_verb(away, "has", "have"),
      number, group_words(group_.name, group_.desc), with_article(operation_words(missed)),
      ranks_with_verb(here, "waits", "wait"));
  add_moments(absent, number, false, found);
  add_moments(there, number, true, found);
  for (std::size_t at = 0; at < std::min(here.size(), kMomentsMax); ++at)
    found.waits.push_back({.rank = here[at], .for_ranks = away, .text = place_words(missed)});
  found.look_at =
      "what the missing rank does after its last collective above: its stack, its log, and the "
      "branch that leads there";
  return {std::move(found), away, here};
}

DumpFinding GroupHang::stalled(const Views& behind, const Views& waiting) const {
  const auto slow = ranks_of(behind);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = -1;
  for (std::size_t at = 0; at < group_.views.size(); ++at) {
    const auto done = state_.completed(at);
    if (!done) continue;
    least = std::min(least, *done);
    most = std::max(most, *done);
  }
  // The first of the collectives that the lagging ranks have not done, as far as a dump still has
  // it.
  const DumpedCollective* held = nullptr;
  for (const GroupView& view : group_.views)
    if (held == nullptr) held = view.at(least + 1);
  for (const GroupView& view : group_.views)
    if (held == nullptr && !view.issued.empty()) held = view.issued.front();
  ZP_CHECK(held != nullptr, "ranks lag and no dump has an entry");
  Diagnosis found = diagnosis("device.stalled", *held);
  Views kept_up;
  for (const std::size_t at : waiting)
    if (!std::binary_search(behind.begin(), behind.end(), at)) kept_up.push_back(at);
  found.gravity = kept_up.empty() ? Gravity::hazard : Gravity::defect;
  found.ranks = slow;
  found.what = fmt::format(
      "{} completed number {} of {} and no later one, its peers number {}: the device of {} stands "
      "still or is slow",
      ranks_with_verb(slow, "has", "have"), least, group_words(group_.name, group_.desc), most,
      rank_words(slow));
  if (!kept_up.empty())
    found.what +=
        fmt::format("; {} in a later one", ranks_with_verb(ranks_of(kept_up), "waits", "wait"));
  add_moments(behind, least + 1, true, found);
  add_moments(kept_up, most + 1, false, found);
  found.look_at =
      "the GPU of that rank: a kernel that does not end, an error in dmesg, its clocks and its "
      "network card; the order of collectives agrees";
  return {std::move(found), slow, ranks_of(waiting)};
}

std::string GroupHang::queued_words(const GroupView& view) const {
  const auto queued = std::count_if(view.issued.begin(), view.issued.end(),
                                    [](const auto* one) { return one->is_waiting(); });
  if (queued < 2) return {};
  return fmt::format("; {} are scheduled or started there, none complete", queued);
}

std::string GroupHang::without_file_words() const {
  if (group_.without_file.empty()) return {};
  return fmt::format("; {} no file, so what {} unknown",
                     ranks_with_verb(group_.without_file, "left", "left"),
                     group_.without_file.size() == 1 ? "it does is" : "they do is");
}

DumpFinding GroupHang::together(const Views& waiting, const DumpedCollective& one) const {
  Diagnosis found = diagnosis("collective.stuck_together", one);
  found.ranks = ranks_of(waiting);
  if (found.last_common && found.last_common->text.starts_with(found.collective))
    found.last_common.reset();  // it is the one that does not complete
  found.what = fmt::format("{} in {} and no rank completes it",
                           ranks_with_verb(found.ranks, "is", "are"), place_words(one));
  found.what +=
      group_.without_file.empty() ? std::string("; no rank left it out") : without_file_words();
  found.what += queued_words(group_.views[waiting.front()]);
  add_moments(waiting, one.number + group_.views[waiting.front()].shift, true, found);
  found.look_at =
      group_.without_file.empty()
          ? "the network and the GPUs, not the order of the program: which rank's GPU does not "
            "work in it, NCCL_DEBUG=INFO, the links between the hosts"
          : "the ranks without a file first: whether they died or never came";
  return {found, group_.without_file, found.ranks};
}

DumpFinding GroupHang::alone(std::size_t at) const {
  const GroupView& view = group_.views[at];
  const DumpedCollective& one = *view.first_waiting();
  Diagnosis found = diagnosis("collective.not_complete", one);
  found.gravity = Gravity::hazard;
  found.ranks = {view.dump->rank};
  const auto queued = std::count_if(view.issued.begin(), view.issued.end(),
                                    [](const auto* op) { return op->is_waiting(); });
  found.what = fmt::format(
      "on rank {} {} of {} scheduled or started and none complete, from {} on", view.dump->rank,
      queued == 1 ? std::string("1 collective") : fmt::format("{} collectives", queued),
      group_words(group_.name, group_.desc) + (queued == 1 ? " is" : " are"), place_words(one));
  const auto counted = view.dump->progress.find(group_.name);
  if (counted != view.dump->progress.end())
    found.what += fmt::format("; by its pg_status it has completed number {} and enqueued {}",
                              counted->second.completed, counted->second.enqueued);
  add_moments({at}, one.number + view.shift, true, found);
  found.look_at =
      "the dumps of the other ranks of the group: one alone does not show who is missing";
  return {found, {}, found.ranks};
}

}  // namespace zeroproof
