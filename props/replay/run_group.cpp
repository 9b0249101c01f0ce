#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "props/replay/gradient_compare.h"
#include "props/replay/properties_level.h"

namespace zeroproof {
namespace {

bool is_same_program(const RunFacts& a, const RunFacts& b) {
  return a.program == b.program && a.dtype == b.dtype && a.world == b.world;
}

bool is_same_run(const RunFacts& a, const RunFacts& b) {
  return is_same_program(a, b) && a.stage == b.stage;
}

// Whether `ranks` ("0,1", or the name of a group whose ranks are unknown) may contain `rank`.
bool has_rank(const std::string& ranks, std::int32_t rank) {
  if (ranks.find_first_not_of("0123456789,") != std::string::npos) return true;
  return fmt::format(",{},", ranks).find(fmt::format(",{},", rank)) != std::string::npos;
}

struct Side {
  const RunFacts& facts;
  const RankDigest& digest;
  const std::string& file;
};

// nullopt: the two sequences agree as far as both are known.
std::optional<Finding> compare(const SequenceDigest& mine, const SequenceDigest& other,
                               const Side& me, const Side& him, const Property* property) {
  Finding finding{property, 0, me.facts.rank, {}, {}, false};
  const auto difference = mine.first_difference(other);
  if (difference && difference->mine != nullptr) {
    finding.lc = difference->mine->lc;
    finding.event = difference->mine->text;
    finding.text =
        fmt::format("number {} on rank {} is a {} at lc {}, on rank {} a {} at lc {} ({})",
                    difference->index, me.facts.rank, difference->mine->text, difference->mine->lc,
                    him.facts.rank, difference->other->text, difference->other->lc, him.file);
    return finding;
  }
  if (difference) {
    finding.text =
        fmt::format("ranks {} and {} differ between number {} and number {} ({})", me.facts.rank,
                    him.facts.rank, difference->index, difference->index_end - 1, him.file);
    return finding;
  }
  const bool is_mine_short = mine.size() < other.size();
  const bool is_excused = is_mine_short ? !me.digest.is_complete() : !him.digest.is_complete();
  if (mine.size() == other.size() || is_excused) return std::nullopt;
  finding.text = fmt::format("rank {} issues {}, rank {} issues {} ({})", me.facts.rank,
                             mine.size(), him.facts.rank, other.size(), him.file);
  return finding;
}

void settle(PropertiesReport& report, const Property* property, std::optional<Finding> finding) {
  if (finding)
    report.falsified.push_back(std::move(*finding));
  else
    report.held.push_back(property);
}

std::optional<Finding> compare_collectives(const Side& me, const Side& him) {
  std::set<std::string> keys;
  for (const Side* side : {&me, &him})
    for (const auto& [ranks, sequence] : side->digest.collectives())
      if (has_rank(ranks, me.facts.rank) && has_rank(ranks, him.facts.rank)) keys.insert(ranks);
  const SequenceDigest none;
  for (const std::string& ranks : keys) {
    const auto mine = me.digest.collectives().find(ranks);
    const auto other = him.digest.collectives().find(ranks);
    auto finding = compare(mine == me.digest.collectives().end() ? none : mine->second,
                           other == him.digest.collectives().end() ? none : other->second, me, him,
                           find_property("P45"));
    if (finding) return finding;
  }
  return std::nullopt;
}

std::optional<std::string> describe_difference(const RankDigest::Gradient& mine,
                                               const RankDigest::Gradient& base,
                                               std::string_view dtype) {
  if (!mine.values || !base.values) {
    const auto& present = mine.values ? mine.values : base.values;
    const bool is_zero = !present || std::all_of(present->begin(), present->end(),
                                                 [](double value) { return value == 0; });
    if (is_zero) return std::nullopt;
    return fmt::format("is missing {}", mine.values ? "at stage 0" : "here");
  }
  if (mine.values->size() != base.values->size())
    return fmt::format("has {} elements, at stage 0 {}", mine.values->size(), base.values->size());
  const auto difference = first_difference(*mine.values, *base.values, dtype);
  if (!difference) return std::nullopt;
  return fmt::format("differs first at element {}: {} here, {} at stage 0, {:.3g} ulps of {}",
                     difference->index, difference->mine, difference->other, difference->ulps,
                     dtype);
}

}  // namespace

void RunGroup::add(const PropertiesLevel& level, std::string_view file) {
  members_.push_back({level.facts(), std::string(file), level.digest()});
}

std::vector<RunGroup::FileReport> RunGroup::compare() const {
  std::vector<FileReport> reports;
  for (const Member& member : members_) {
    FileReport one{member.file, {}};
    if (member.facts.stage >= 0) {
      compare_ranks(member, one.report);
      compare_gradients(member, one.report);
    }
    reports.push_back(std::move(one));
  }
  return reports;
}

// Every rank is compared with the lowest one, so that a difference is told once.
void RunGroup::compare_ranks(const Member& member, PropertiesReport& report) const {
  const Member* first = nullptr;
  bool has_other = false;
  for (const Member& one : members_) {
    if (!is_same_run(one.facts, member.facts)) continue;
    if (first == nullptr || one.facts.rank < first->facts.rank) first = &one;
    has_other = has_other || one.facts.rank != member.facts.rank;
  }
  const Property* collectives = find_property("P45");
  const Property* gathers = find_property("P67");
  const Property* decisions = find_property("P57");
  if (!has_other) {
    const std::string reason =
        member.facts.world == 1 ? "one rank" : "needs the traces of other ranks";
    report.not_applicable.push_back({collectives, reason});
    report.not_applicable.push_back({gathers, reason});
    return;
  }
  const Side me{member.facts, member.digest, member.file};
  const Side him{first->facts, first->digest, first->file};
  settle(report, collectives, compare_collectives(me, him));
  if (member.digest.gathers().size() == 0 && first->digest.gathers().size() == 0)
    report.not_applicable.push_back({gathers, "no parameter is gathered"});
  else
    settle(report, gathers,
           zeroproof::compare(member.digest.gathers(), first->digest.gathers(), me, him, gathers));
  if (member.digest.decisions().size() > 0 || first->digest.decisions().size() > 0)
    settle(report, decisions,
           zeroproof::compare(member.digest.decisions(), first->digest.decisions(), me, him,
                              decisions));
}

const RunGroup::Member* RunGroup::baseline(const Member& of) const {
  for (const Member& one : members_)
    if (is_same_program(one.facts, of.facts) && one.facts.stage == 0 &&
        one.facts.rank == of.facts.rank)
      return &one;
  return nullptr;
}

void RunGroup::compare_gradients(const Member& member, PropertiesReport& report) const {
  const Property* unsharded = find_property("P26");
  const Member* base = baseline(member);
  const auto skip = [&](std::string reason) {
    report.not_applicable.push_back({unsharded, std::move(reason)});
  };
  if (member.facts.stage == 0) return skip("stage 0 is the reference");
  if (base == nullptr) return skip("needs the stage 0 trace of the same program");
  if (member.digest.parameters_hash() != base->digest.parameters_hash())
    return skip("the initial parameters differ from stage 0");
  std::set<const Property*> compared;
  for (const RankDigest::Gradient& mine : member.digest.gradients()) {
    const auto& theirs = base->digest.gradients();
    const auto same = std::find_if(theirs.begin(), theirs.end(),
                                   [&](const auto& other) { return other.name == mine.name; });
    if (same == theirs.end()) continue;
    const Property* property = find_property(mine.property_number);
    compared.insert(property);
    const auto difference = describe_difference(mine, *same, member.facts.dtype);
    const bool is_told = std::any_of(report.falsified.begin(), report.falsified.end(),
                                     [&](const Finding& one) { return one.property == property; });
    if (!difference || is_told) continue;
    report.falsified.push_back(
        {property, mine.lc, member.facts.rank, "tensor grad " + mine.name,
         fmt::format("the gradient {} {} ({})", mine.name, *difference, base->file), false});
  }
  if (compared.empty())
    return skip(member.digest.is_truncated_by_cap() ? "the gradients are too large to keep"
                                                    : "no gradient was recorded at both stages");
  for (const Property* property : compared) {
    const bool is_told = std::any_of(report.falsified.begin(), report.falsified.end(),
                                     [&](const Finding& one) { return one.property == property; });
    if (!is_told) report.held.push_back(property);
  }
}

}  // namespace zeroproof
