#include "props/foreign/dump_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "props/foreign/dump_runs.h"
#include "props/foreign/dump_words.h"
#include "props/foreign/message_compare.h"
#include "props/foreign/node_compare.h"
#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

// The members of a run that left no file: by its groups, else by its world, else the gaps between
// the ranks that are there.
std::vector<std::int32_t> ranks_without_file(const std::vector<RankDump>& run) {
  std::set<std::int32_t> wanted;
  std::set<const std::vector<std::int32_t>*> known;
  for (const RankDump& dump : run) {
    for (const auto& [name, group] : dump.groups)
      if (known.insert(group.members).second)
        wanted.insert(group.members->begin(), group.members->end());
    const std::int32_t ranks = std::max(dump.world, run.back().rank + 1);
    if (dump.groups.empty() && wanted.size() < static_cast<std::size_t>(ranks))
      for (std::int32_t rank = 0; rank < ranks; ++rank) wanted.insert(rank);
  }
  for (const RankDump& dump : run) wanted.erase(dump.rank);
  return {wanted.begin(), wanted.end()};
}

class DumpedRunComparison {
 public:
  DumpedRunComparison(const DumpRun& run, DumpReport& report) : run_(run.ranks), report_(report) {}

  void run() {
    std::vector<DumpFinding> findings;
    std::vector<CollectiveGroup> groups = collective_groups(run_);
    note_unnamed_groups(groups);
    note_cut_windows(groups);
    note_unknown_members(groups);
    for (CollectiveGroup& group : groups)
      compare_group(std::move(group), report_.verdicts, findings);
    compare_messages(run_, report_.verdicts, findings);
    for (Diagnosis& one : causes_first(std::move(findings)))
      report_.diagnosis.push_back(std::move(one));
    if (auto order = compare_nodes(run_)) report_.diagnosis.push_back(std::move(*order));
    note_missing_files();
    note_unread();
  }

 private:
  struct Note {
    std::string kind;
    std::string what;
    std::vector<std::int32_t> ranks;
    std::string rule;
    std::string look_at;
  };

  void note(Note said) {
    Diagnosis found{
        .kind = std::move(said.kind), .gravity = Gravity::note, .what = std::move(said.what)};
    found.ranks = std::move(said.ranks);
    found.rule = std::move(said.rule);
    found.look_at = std::move(said.look_at);
    for (const RankDump& dump : run_) found.files.push_back(dump.path);
    report_.diagnosis.push_back(std::move(found));
  }

  void note_missing_files() {
    if (run_.size() < 2) return;
    auto away = ranks_without_file(run_);
    if (away.empty()) return;
    std::string what = fmt::format("{} of the run left no file among the dumps of {} ranks",
                                   rank_words(away), run_.size());
    note(
        {"rank.no_file", std::move(what), std::move(away),
         "a comparison needs the file of every rank: a rank without one may be the one that others "
         "wait for",
         "whether the rank died before it could dump, or its file is somewhere else"});
  }

  void note_unnamed_groups(const std::vector<CollectiveGroup>& groups) {
    std::string apart;
    std::vector<std::int32_t> ranks;
    for (const CollectiveGroup& group : groups) {
      if (group.is_named()) continue;
      std::vector<std::int32_t> members;
      for (const GroupView& view : group.views) members.push_back(view.dump->rank);
      apart += (apart.empty() ? "" : "; ") + rank_words(members);
      ranks.insert(ranks.end(), members.begin(), members.end());
    }
    if (ranks.empty() || run_.size() < 2) return;
    std::sort(ranks.begin(), ranks.end());
    note({"dump.groups_unknown",
          "the trace does not say in which of its groups a rank issued a collective; only ranks "
          "that share all their groups are compared: " +
              apart,
          std::move(ranks), "c10d counts the collectives of each group apart",
          "a trace of NCCL, whose slices name the group, or flight-recorder dumps"});
  }

  // Profilers start and stop at slightly different moments.
  void note_cut_windows(const std::vector<CollectiveGroup>& groups) {
    std::set<std::int32_t> ranks;
    for (const CollectiveGroup& group : groups) {
      std::size_t most = 0;
      for (const GroupView& view : group.views) most = std::max(most, view.issued.size());
      for (const GroupView& view : group.views)
        if (view.dump->is_window() && view.issued.size() < most) ranks.insert(view.dump->rank);
    }
    if (ranks.empty()) return;
    std::vector<std::int32_t> cut(ranks.begin(), ranks.end());
    std::string what = fmt::format(
        "the window of {} holds fewer collectives than those of the peers; only the common part is "
        "compared",
        rank_words(cut));
    note({"dump.window_cut", std::move(what), std::move(cut),
          "profilers of different ranks start and stop at different moments",
          "a profiler that starts and stops after a barrier, where the ends matter"});
  }

  // Gloo's dumps name no members. A group that one rank alone uses may lack the others.
  void note_unknown_members(const std::vector<CollectiveGroup>& groups) {
    for (const CollectiveGroup& group : groups) {
      if (group.size > 0 || group.views.size() != 1 || run_.size() < 2 || !group.is_named())
        continue;
      const GroupView& view = group.views.front();
      if (view.dump->is_window()) continue;
      note(
          {"dump.members_unknown",
           fmt::format("only rank {} issued a collective in {}, last {}; the dumps do not show who "
                       "else is in the group",
                       view.dump->rank, group_words(group.name, group.desc),
                       place_words(*view.issued.back())),
           {view.dump->rank},
           "all members of a group issue each of its collectives",
           "whether the group has more members: then they never came to it"});
    }
  }

  void note_unread() {
    std::uint64_t unread = 0;
    for (const RankDump& dump : run_) unread += dump.unread;
    if (unread == 0) return;
    note(
        {"dump.collectives_unread",
         fmt::format("{} slices record_param_comms do not name their collective and no other slice "
                     "does; they are not compared",
                     unread),
         {},
         "old versions of PyTorch write no arguments",
         "a newer PyTorch"});
  }

  const std::vector<RankDump>& run_;
  DumpReport& report_;
};

void note_unpaired(std::vector<std::string> paths, DumpReport& report) {
  if (paths.empty()) return;
  Diagnosis found{.kind = "dump.window_unpaired", .gravity = Gravity::note};
  found.what = fmt::format(
      "{} traces of one rank have no trace of another rank that lies beside them in time; they are "
      "not compared",
      paths.size());
  found.files = std::move(paths);
  found.rule = "windows of different ranks are compared where they lie together in time";
  found.look_at = "whether all ranks wrote all their windows";
  report.diagnosis.push_back(std::move(found));
}

// The facts of a dump without its lists.
RankDump summary_of(const RankDump& dump) {
  RankDump summary{.path = dump.path, .format = dump.format, .version = dump.version};
  summary.rank = dump.rank;
  summary.world = dump.world;
  summary.events = dump.events;
  summary.is_truncated = dump.is_truncated;
  return summary;
}

}  // namespace

bool DumpReport::is_falsified() const {
  return std::any_of(diagnosis.begin(), diagnosis.end(),
                     [](const Diagnosis& one) { return one.gravity == Gravity::defect; });
}

DumpReport compare_dumps(std::vector<RankDump> dumps) {
  DumpReport report;
  std::int32_t place = 0;
  for (RankDump& dump : dumps) {
    if (dump.rank < 0) dump.rank = place;
    ++place;
    report.collectives.push_back(dump.collectives.size());
    report.nodes.push_back(dump.nodes.size());
    report.dumps.push_back(summary_of(dump));
    if (dump.is_truncated)
      report.faults.emplace_back(
          ErrorCode::unreadable,
          fmt::format("{}: truncated: the data stop in the middle; what stands "
                      "before was read ({} elements)",
                      dump.path, dump.events));
  }
  DumpRuns runs = dump_runs(std::move(dumps));
  for (const DumpRun& run : runs.runs) DumpedRunComparison(run, report).run();
  note_unpaired(std::move(runs.unpaired), report);
  std::stable_sort(report.diagnosis.begin(), report.diagnosis.end(),
                   [](const Diagnosis& a, const Diagnosis& b) { return a.gravity < b.gravity; });
  return report;
}

}  // namespace zeroproof
