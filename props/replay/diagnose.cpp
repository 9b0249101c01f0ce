#include "props/replay/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "props/replay/consequences.h"
#include "props/replay/context_reader.h"
#include "props/replay/draft.h"
#include "props/replay/finding_words.h"
#include "props/replay/moment.h"
#include "props/replay/rank_set.h"
#include "props/replay/run_numbers.h"
#include "props/replay/uncaught.h"

namespace zeroproof {
namespace {

constexpr std::size_t kContextsMax = 64;  // places of a replay that are read again

std::string rule_of(const Property& property) {
  return fmt::format("{} {}: {}", property.number, property.id, property.statement);
}

class Diagnoser {
 public:
  explicit Diagnoser(const ReplayReport& report) : report_(report) {}

  std::vector<Diagnosis> run() {
    for (std::size_t at = 0; at < report_.traces.size(); ++at) take_trace(at);
    take_runs();
    drafts_ = drop_consequences(std::move(drafts_), explained_);
    add_context();
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) {
      return a.diagnosis.gravity < b.diagnosis.gravity;
    });
    std::vector<Diagnosis> all;
    for (Draft& draft : drafts_) {
      if (draft.count > 1 && draft.wants_context)
        draft.diagnosis.what += fmt::format(" ({} places, this is the first)", draft.count);
      all.push_back(std::move(draft.diagnosis));
    }
    return all;
  }

 private:
  void take_trace(std::size_t at) {
    const TraceReplay& trace = report_.traces[at];
    if (!trace.story) return;
    take_end(at);
    take_notes(at);
    if (auto ended = uncaught_exception(*trace.story)) {
      ended->trace = at;
      add(std::move(*ended));
    }
    for (const Diagnosis& found : trace.story->found) {
      const std::uint64_t lc = found.order.empty() ? 0 : found.order.back().lc;
      add({.run = trace.story->run, .diagnosis = found, .trace = at, .lc = lc});
    }
    if (trace.properties) take_findings(at, *trace.properties);
    if (trace.queue && trace.queue->first_mismatch) take_queue(at);
  }

  // A file without its end: the process died, or was cut off.
  void take_end(std::size_t at) {
    const TraceReplay& trace = report_.traces[at];
    const TraceStory& story = *trace.story;
    if (story.is_complete || !trace.fault) return;
    Diagnosis found{
        .kind = story.open_transforms > 0 ? "process.died_in_transform" : "process.ended_early",
        .ranks = {story.rank}};
    found.what = fmt::format(
        "the file of rank {} ends at lc {} without its end: the process died{}, or "
        "the file was cut",
        story.rank, story.last_lc,
        story.open_transforms > 0 ? " inside a functorch transform" : "");
    found.order = story.last;
    if (!found.order.empty()) found.order.back().is_bad = true;
    found.rule = "a recording ends with its end record";
    found.look_at =
        story.open_transforms > 0
            ? "ZeRO-3 under torch.func crashes the process in DeepSpeed edaa7221: run the "
              "transform on engine.module with gathered parameters"
            : "the log of this rank: out of memory, a signal, os._exit; what it did last is "
              "in the order below";
    for (const OpenCollective& open : story.open_collectives)
      found.waits.push_back({.rank = story.rank, .for_ranks = {}, .text = open.text});
    add({.run = story.run, .diagnosis = std::move(found), .trace = at, .lc = story.last_lc});
  }

  // What the recorder says that it did not see.
  void take_notes(std::size_t at) {
    const TraceStory& story = *report_.traces[at].story;
    for (const NoteRecord& note : story.facts.notes) {
      if (note.observer.empty()) continue;
      Diagnosis found{.kind = "recorder.not_observed",
                      .gravity = Gravity::note,
                      .what = "not observed: " + note.text,
                      .ranks = {story.rank}};
      found.rule = "what the recorder did not see is not judged";
      found.look_at = note.lost.empty() ? std::string(
                                              "docs/reference/recorder.md: what is seen of each "
                                              "framework and version")
                                        : "rules that need " + listed(note.lost) + " are left out";
      add({.run = story.run, .diagnosis = std::move(found), .trace = at});
    }
  }

  // A depth that stays is reported although no result is wrong yet; other hazards of properties
  // stand in the levels.
  void take_findings(std::size_t at, const PropertiesReport& report) {
    for (const Finding& finding : report.falsified) take_finding(at, finding);
    for (const Finding& finding : report.latent)
      if (finding.property->number == "P4") take_finding(at, finding);
  }

  void take_finding(std::size_t at, const Finding& finding) {
    const FindingWords* words = finding_words(*finding.property);
    Diagnosis found{.kind = words != nullptr ? std::string(words->kind)
                                             : "property." + std::string(finding.property->id),
                    .gravity = finding.is_latent ? Gravity::hazard : Gravity::defect,
                    .what = finding.text,
                    .ranks = {finding.rank}};
    found.rule = rule_of(*finding.property);
    found.look_at = words != nullptr ? std::string(words->look_at)
                                     : fmt::format("docs/reference/trace_properties.md, {}",
                                                   finding.property->source);
    add({.run = report_.traces[at].story->run,
         .diagnosis = std::move(found),
         .trace = at,
         .lc = finding.lc,
         .wants_context = finding.lc > 0,
         .is_after_exception = finding.is_after_exception});
  }

  void take_queue(std::size_t at) {
    const TraceReplay& trace = report_.traces[at];
    Diagnosis found{.kind = "autograd.node_order",
                    .what = trace.queue->first_mismatch->text,
                    .ranks = {trace.story->rank}};
    found.rule = "autograd Q1, Q2, E1 to E3: the order of nodes follows from the graph";
    found.look_at =
        "hooks or Functions that change the graph while it runs; docs/explanation/autograd.md";
    add({.run = trace.story->run, .diagnosis = std::move(found), .trace = at});
  }

  // One entry a run and kind: other ranks and later places only count.
  void add(Draft draft) {
    draft.diagnosis.files.push_back(report_.traces[draft.trace].path);
    for (Draft& known : drafts_) {
      if (!is_same(known, draft)) continue;
      known.count += known.trace == draft.trace ? 1 : 0;
      merge(known.diagnosis.ranks, draft.diagnosis.ranks);
      merge(known.diagnosis.files, draft.diagnosis.files);
      return;
    }
    drafts_.push_back(std::move(draft));
  }

  static bool is_same(const Draft& known, const Draft& draft) {
    return known.run == draft.run && known.diagnosis.kind == draft.diagnosis.kind &&
           known.diagnosis.gravity == draft.diagnosis.gravity &&
           known.is_of_peers == draft.is_of_peers &&
           (known.diagnosis.kind != "recorder.not_observed" ||
            known.diagnosis.what == draft.diagnosis.what);
  }

  template <class T>
  static void merge(std::vector<T>& into, const std::vector<T>& from) {
    for (const T& one : from) {
      const auto at = std::lower_bound(into.begin(), into.end(), one);
      if (at == into.end() || *at != one) into.insert(at, one);
    }
  }

  // What the ranks of a run say together, its cause in front of everything else.
  void take_runs() {
    std::map<std::string_view, const TraceReplay*> traces;
    for (const TraceReplay& trace : report_.traces) traces[trace.path] = &trace;
    std::vector<Draft> compared;
    for (const RunComparison& run : report_.runs) {
      note_missing_files(run);
      for (const Diagnosis& found : run.found) {
        compared.push_back({.run = run.run, .diagnosis = found});
        if (found.gravity == Gravity::defect) explained_.insert(run.run);
      }
      take_numbers(run, traces);
    }
    drafts_.insert(drafts_.begin(), compared.begin(), compared.end());
  }

  void note_missing_files(const RunComparison& run) {
    if (run.ranks.size() < 2 || std::cmp_greater_equal(run.ranks.size(), run.world)) return;
    Diagnosis found{.kind = "rank.no_file", .gravity = Gravity::note};
    for (std::int32_t rank = 0; rank < run.world; ++rank)
      if (!std::binary_search(run.ranks.begin(), run.ranks.end(), rank))
        found.ranks.push_back(rank);
    found.what = fmt::format("of {} ranks {} left no file: {}", run.world, found.ranks.size(),
                             rank_set(found.ranks));
    found.rule = "a run has a file a rank";
    found.look_at = "whether these ranks started, and where their files are";
    drafts_.push_back({.run = run.run, .diagnosis = std::move(found)});
  }

  // Ranks that average their parameters now and then differ between two averages.
  void take_numbers(const RunComparison& run,
                    const std::map<std::string_view, const TraceReplay*>& traces) {
    std::vector<NumbersFile> compared;
    for (const std::string& file : run.files) {
      const TraceReplay& trace = *traces.at(file);
      if (!trace.story) continue;
      const std::vector<Diagnosis>& found = trace.story->found;
      const bool is_local = std::any_of(found.begin(), found.end(), [](const Diagnosis& one) {
        return one.kind == "ddp.local_steps";
      });
      if (!is_local) compared.push_back({trace.path, &*trace.story});
    }
    for (Diagnosis& found : compare_numbers(compared))
      drafts_.push_back({.run = run.run, .diagnosis = std::move(found)});
  }

  void add_context() {
    std::map<std::size_t, std::vector<Draft*>> places;  // by trace
    std::size_t count = 0;
    for (Draft& draft : drafts_)
      if (draft.wants_context && ++count <= kContextsMax) places[draft.trace].push_back(&draft);
    for (const auto& [trace, drafts] : places) {
      std::vector<std::uint64_t> lcs;
      for (const Draft* draft : drafts) lcs.push_back(draft->lc);
      auto moments = read_context(report_.traces[trace].path, lcs);
      for (std::size_t at = 0; at < drafts.size(); ++at)
        drafts[at]->diagnosis.order = std::move(moments[at]);
    }
  }

  const ReplayReport& report_;
  std::vector<Draft> drafts_;
  std::set<std::string> explained_;  // runs whose divergence has been reported
};

}  // namespace

std::vector<Diagnosis> diagnose(const ReplayReport& report) {
  return Diagnoser(report).run();
}

void mark_defects(ReplayReport& report, const std::vector<Diagnosis>& diagnosis) {
  std::map<std::string_view, TraceReplay*> traces;
  for (TraceReplay& trace : report.traces) traces[trace.path] = &trace;
  for (const Diagnosis& one : diagnosis) {
    if (one.gravity != Gravity::defect) continue;
    for (const std::string& file : one.files) {
      const auto at = traces.find(file);
      if (at == traces.end() || !at->second->story) continue;
      const std::int32_t rank = at->second->story->rank;  // a file may only be compared with
      if (std::find(one.ranks.begin(), one.ranks.end(), rank) != one.ranks.end())
        at->second->has_defect = true;
    }
  }
}

}  // namespace zeroproof
