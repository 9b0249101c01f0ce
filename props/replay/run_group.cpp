#include "props/replay/run_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "props/replay/gradient_compare.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

bool is_same_program(const RunFacts& a, const RunFacts& b) {
  return a.program == b.program && a.dtype == b.dtype && a.world == b.world;
}

// One sequence of every rank of a run; the index is that of the rank's member.
struct Sequence {
  const Property* property = nullptr;
  std::string name;  // "group world", "gathers"
  std::vector<const SequenceDigest*> digests;

  bool is_empty() const {
    return std::all_of(digests.begin(), digests.end(),
                       [](const SequenceDigest* one) { return one->size() == 0; });
  }
};

// The ranks whose sequence most ranks have; the lowest of them stands for all.
std::size_t reference_of(const std::vector<const SequenceDigest*>& digests) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::size_t, std::size_t>> votes;
  for (std::size_t at = 0; at < digests.size(); ++at) {
    auto& [count, first] = votes[{digests[at]->size(), digests[at]->hash()}];
    if (count++ == 0) first = at;
  }
  std::pair<std::size_t, std::size_t> best = {0, 0};
  for (const auto& [content, vote] : votes)
    if (vote.first > best.first || (vote.first == best.first && vote.second < best.second))
      best = vote;
  return best.second;
}

// What a rank's entry is, where the digest kept it.
std::string entry_words(const SequenceDigest& digest, std::uint64_t index, std::uint64_t lc) {
  const std::string_view text = digest.text(index);
  return text.empty() ? fmt::format("at lc {}", lc) : fmt::format("{} at lc {}", text, lc);
}

std::string difference_text(const Sequence& sequence, const SequenceDigest& mine,
                            const SequenceDigest& other, std::int32_t rank, std::int32_t other_rank,
                            const SequenceDigest::Difference& at) {
  if (at.is_exact())
    return fmt::format("number {} on rank {} ({}, {}) is not that of rank {} ({})", at.index, rank,
                       sequence.name, entry_words(mine, at.index, at.lc), other_rank,
                       entry_words(other, at.index, at.other_lc));
  return fmt::format("ranks {} and {} differ between number {} and number {} of {}", rank,
                     other_rank, at.index, at.index_end - 1, sequence.name);
}

// One finding for each rank that has one, by its index.
using RankFindings = std::vector<std::pair<std::size_t, Finding>>;

void settle(const Property* property, const RankFindings& findings,
            std::vector<PropertiesReport>& reports) {
  std::vector<bool> has_finding(reports.size());
  for (const auto& [at, finding] : findings) {
    if (!has_finding[at]) reports[at].falsified.push_back(finding);
    has_finding[at] = true;
  }
  for (std::size_t at = 0; at < reports.size(); ++at)
    if (!has_finding[at]) reports[at].held.push_back(property);
}

// Whether ranks may differ in length: the shorter recording was cut, or no rank waits in what the
// longer one has more.
bool is_length_excused(const RunMember& shorter, const CollectiveLane* longer) {
  return !shorter.digest->is_complete() || (longer != nullptr && longer->open.first() == nullptr);
}

// `mine` against the reference; nullopt: they agree as far as both are known.
std::optional<Finding> compare(const Sequence& sequence, std::size_t mine, std::size_t other,
                               const std::vector<RunMember>& members, bool is_excused) {
  const SequenceDigest& a = *sequence.digests[mine];
  const SequenceDigest& b = *sequence.digests[other];
  Finding finding{sequence.property, 0, members[mine].rank, {}, {}, false};
  if (const auto at = a.first_difference(b)) {
    finding.lc = at->lc;
    finding.event = sequence.name;
    finding.text = difference_text(sequence, a, b, members[mine].rank, members[other].rank, *at);
  } else if (a.size() != b.size() && !is_excused) {
    finding.text = fmt::format("rank {} has {} of {}, rank {} has {}", members[mine].rank, a.size(),
                               sequence.name, members[other].rank, b.size());
  } else {
    return std::nullopt;
  }
  finding.text += fmt::format(" ({})", members[other].path);
  return finding;
}

RankFindings sequence_findings(const Sequence& sequence, const std::vector<RunMember>& members) {
  RankFindings findings;
  const std::size_t reference = reference_of(sequence.digests);
  for (std::size_t at = 0; at < members.size(); ++at) {
    const bool is_short = sequence.digests[at]->size() < sequence.digests[reference]->size();
    const bool is_cut = !members[is_short ? at : reference].digest->is_complete();
    if (auto finding = compare(sequence, at, reference, members, is_cut))
      findings.push_back({at, std::move(*finding)});
  }
  return findings;
}

RankFindings collective_findings(const LaneGroups& lanes, const std::vector<RunMember>& members) {
  RankFindings findings;
  static const SequenceDigest kNone;
  for (const LaneGroup& group : lanes.groups) {
    if (group.agrees() || group.first_number >= 0) continue;  // windows that begin apart
    Sequence sequence{find_property("P45"), "group " + group.name, {}};
    sequence.digests.resize(members.size(), &kNone);
    for (const LaneSeat& seat : group.seats)
      if (seat.lane != nullptr) sequence.digests[seat.member] = &seat.lane->operations;
    const LaneSeat& reference = group.seats[group.classes.front().seats.front()];
    for (const LaneSeat& seat : group.seats) {
      const bool is_short = seat.size() < reference.size();
      const LaneSeat& shorter = is_short ? seat : reference;
      const bool is_excused =
          is_length_excused(members[shorter.member], (is_short ? reference : seat).lane);
      if (auto finding = compare(sequence, seat.member, reference.member, members, is_excused))
        findings.push_back({seat.member, std::move(*finding)});
    }
  }
  return findings;
}

std::vector<const SequenceDigest*> digests_of(const std::vector<RunMember>& members,
                                              const SequenceDigest& (RankDigest::*of)() const) {
  std::vector<const SequenceDigest*> digests;
  for (const RunMember& member : members) digests.push_back(&(member.digest->*of)());
  return digests;
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

std::string run_word(const RunFacts& facts) {
  return fmt::format("{} stage {} {} {}", facts.program, facts.stage, facts.dtype, facts.world);
}

void RunGroup::add(const PropertiesLevel& level, std::string_view file) {
  add(level.facts(), level.digest(), file);
}

void RunGroup::add(RunFacts facts, RankDigest digest, std::string_view file) {
  digest.share_members(tables_);
  if (values_kept_ + digest.values_kept() > kValuesMax) digest.drop_gradients();
  values_kept_ += digest.values_kept();
  std::string run = run_word(facts);
  members_.push_back({std::move(facts), std::string(file), std::move(run), std::move(digest)});
}

std::size_t RunGroup::memory_bytes() const {
  std::size_t bytes = 0;
  for (const Member& member : members_)
    bytes += sizeof(Member) + member.digest.memory_bytes() + member.file.capacity();
  return bytes;
}

std::vector<RunGroup::FileReport> RunGroup::compare() const {
  std::vector<FileReport> reports;
  std::map<const Member*, std::size_t> places;
  for (const Member& member : members_) {
    places[&member] = reports.size();
    FileReport& one = reports.emplace_back(FileReport{member.file, {}});
    if (member.facts.stage >= 0) compare_gradients(member, one.report);
  }
  for (const Members& run : runs()) {
    if (run.front()->facts.stage < 0) continue;
    std::vector<PropertiesReport> compared = compare_ranks(run);
    for (std::size_t at = 0; at < run.size(); ++at)
      reports[places.at(run[at])].report.merge(compared[at]);
  }
  return reports;
}

std::vector<RunComparison> RunGroup::compare_runs(const std::function<bool()>& should_stop) const {
  std::vector<RunComparison> all;
  for (const Members& run : runs()) {
    if (run.size() < 2) continue;
    RunComparison compared;
    if (has_twins(run))
      compared.skipped.push_back(
          fmt::format("{} files of one run have the same rank: name the files of one run, or keep "
                      "runs in folders of their own",
                      run.size()));
    else
      compared = compare_run(run_members(run), should_stop);
    compared.run = run.front()->run;
    compared.world = run.front()->facts.world;
    all.push_back(std::move(compared));
  }
  return all;
}

// Files of one word, by the folder too where a rank would be there twice.
std::vector<RunGroup::Members> RunGroup::runs() const {
  std::map<std::string, Members> by_word;
  for (const Member& member : members_) by_word[member.run].push_back(&member);
  std::vector<Members> all;
  for (auto& [word, members] : by_word) {
    std::stable_sort(members.begin(), members.end(), [](const Member* a, const Member* b) {
      return std::tie(a->facts.rank, a->file) < std::tie(b->facts.rank, b->file);
    });
    if (!has_twins(members)) {
      all.push_back(std::move(members));
      continue;
    }
    std::map<std::string, Members> by_folder;
    for (const Member* member : members)
      by_folder[member->file.substr(0, member->file.rfind('/') + 1)].push_back(member);
    for (auto& [folder, one] : by_folder) all.push_back(std::move(one));
  }
  return all;
}

bool RunGroup::has_twins(const Members& run) {
  return std::adjacent_find(run.begin(), run.end(), [](const Member* a, const Member* b) {
           return a->facts.rank == b->facts.rank;
         }) != run.end();
}

std::vector<RunMember> RunGroup::run_members(const Members& run) {
  std::vector<RunMember> members;
  for (const Member* member : run)
    members.push_back({&member->digest, member->facts.rank, member->file});
  return members;
}

std::vector<PropertiesReport> RunGroup::compare_ranks(const Members& run) {
  const Property* collectives = find_property("P45");
  const Property* gathers = find_property("P67");
  std::vector<PropertiesReport> reports(run.size());
  const auto skip = [&](const Property* property, const std::string& reason) {
    for (PropertiesReport& report : reports) report.not_applicable.push_back({property, reason});
  };
  if (run.size() < 2 || has_twins(run)) {
    const std::string reason = run.size() > 1                  ? "two files of one rank"
                               : run.front()->facts.world == 1 ? "one rank"
                                                               : "needs the traces of other ranks";
    skip(collectives, reason);
    skip(gathers, reason);
    return reports;
  }
  const std::vector<RunMember> members = run_members(run);
  const LaneGroups lanes = lane_groups(members);
  if (lanes.groups.empty() && !lanes.skipped.empty())
    skip(collectives, lanes.skipped.front());
  else
    settle(collectives, collective_findings(lanes, members), reports);
  const Sequence gathered = {gathers, "gathers", digests_of(members, &RankDigest::gathers)};
  if (gathered.is_empty())
    skip(gathers, "no parameter is gathered");
  else
    settle(gathers, sequence_findings(gathered, members), reports);
  const Sequence decided = {find_property("P57"), "decisions",
                            digests_of(members, &RankDigest::decisions)};
  if (!decided.is_empty()) settle(decided.property, sequence_findings(decided, members), reports);
  return reports;
}

const RunGroup::Member* RunGroup::baseline(const Member& of) const {
  for (const Member& one : members_)
    if (one.facts.stage == 0 && one.facts.rank == of.facts.rank &&
        is_same_program(one.facts, of.facts))
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
