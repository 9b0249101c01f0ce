#include "props/subject/subject_hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace zeroproof::subject {
namespace {

constexpr std::uint64_t kSavePeriod = 20;     // cases between two writes of the progress
constexpr std::uint64_t kSkippedMax = 2'000;  // in a row: the subject can do very little
constexpr int kRefusedMax = 20;               // in a row
constexpr int kRenamedMax = 3;                // programs of a group that are made small

}  // namespace

HuntReport SubjectHunt::run() {
  start_ns_ = watch_.now_ns();
  std::uint64_t number = options_.first;
  if (begin()) number = std::max(number, report_.total.next);
  std::uint64_t skipped_in_a_row = 0;
  for (; !should_end(); ++number) {
    if (number % options_.shards != options_.shard) continue;
    const std::uint64_t before = report_.cases;
    if (run_case(number)) report_.total.next = number + 1;
    skipped_in_a_row = report_.cases == before ? skipped_in_a_row + 1 : 0;
    if (skipped_in_a_row == kSkippedMax) break;
    if (report_.cases % kSavePeriod == 0 && report_.cases != before) save_all();
  }
  report_.seconds = static_cast<double>(watch_.now_ns() - start_ns_) * 1e-9;
  report_.total.seconds += report_.seconds;
  save_all();
  return std::move(report_);
}

bool SubjectHunt::should_end() const {
  return is_over() || report_.cases >= options_.cases_max;
}

// By time, by the user, or by a problem.
bool SubjectHunt::is_over() const {
  return report_.problem || (watch_.should_stop && watch_.should_stop()) ||
         watch_.now_ns() - start_ns_ > options_.time_max_ns;
}

// What is known needs no smaller program unless asked for, and what comes and goes has none.
bool SubjectHunt::wants_minimizing(const SubjectFinding& finding) const {
  const bool is_settled = finding.verdict.known && !options_.minimizes_known;
  return options_.minimizes && !is_settled && !finding.is_flaky() && !is_over();
}

// Whether there is a folder to go on from.
bool SubjectHunt::begin() {
  search_ = fmt::format("seed-{}-shard-{}-of-{}-{}{}", options_.seed, options_.shard,
                        options_.shards, cases_.fingerprint(),
                        options_.known_causes == KnownCauses::skip ? "-skip-known" : "");
  if (folder_ == nullptr) return false;
  auto progress = folder_->progress(search_);
  if (!progress) {
    report_.problem = progress.error();
    return false;
  }
  report_.total = std::move(*progress);
  auto mine = folder_->features(search_);
  auto all = folder_->features_of_all(cases_.fingerprint());
  for (const auto* const read : {&mine, &all}) {
    if (*read) continue;
    report_.problem = read->error();
    return false;
  }
  mine_ = std::move(*mine);
  all_ = std::move(*all);
  report_.features = all_.size();
  auto earlier = folder_->load();
  if (!earlier) {
    report_.problem = earlier.error();
    return false;
  }
  const SubjectCommand& command = subject_.command();
  for (SubjectFinding& one : *earlier)
    if (one.engine == command.engine && one.settings == command.settings)
      report_.earlier.push_back(std::move(one));
  return true;
}

// None: the hunt ends.
std::optional<Verdict> SubjectHunt::compare(const program::Program& program) {
  auto verdict = subject_.compare(program, options_.known_causes);
  if (!verdict) {
    report_.problem = verdict.error();
    return std::nullopt;
  }
  if (verdict->status == Status::stopped) return std::nullopt;
  if (verdict->status == Status::skipped) return std::move(*verdict);
  ++report_.runs;
  if (verdict->status == Status::hang) ++report_.hangs;
  if (watch_.on_run) watch_.on_run(report_);
  return std::move(*verdict);
}

// Whether it has a verdict; otherwise the hunt ends, and another one begins with it. One candidate
// runs: of those that are not skipped, the one with the rarest features.
bool SubjectHunt::run_case(std::uint64_t number) {
  const CaseId first{options_.seed, number, options_.first_candidate};
  for (const Candidate& candidate : candidates_of(cases_, first, options_.candidates, all_)) {
    const DrawnCase& drawn = candidate.drawn;
    if (drawn.lacking) {
      ++report_.skipped[*drawn.lacking];
      return true;
    }
    const auto verdict = compare(drawn.program);
    if (!verdict) return false;
    if (is_skipped(*verdict)) continue;
    count(candidate, *verdict);
    if (!verdict->is_finding()) return true;
    note(drawn, *verdict);
    note_others(drawn.id);
    return true;
  }
  return true;
}

void SubjectHunt::count(const Candidate& candidate, const Verdict& verdict) {
  ++report_.cases;
  const std::string status(name_of(verdict.status));
  ++report_.statuses[status];
  ++report_.total.statuses[status];
  mine_.add(candidate.features);
  all_.add(candidate.features);
  report_.features = all_.size();
}

// Whether it did not run: the subject reads it as no program, or it may show what is known.
bool SubjectHunt::is_skipped(const Verdict& verdict) {
  if (verdict.status == Status::skipped) {
    ++report_.may_show[verdict.known ? verdict.known->name : "a known finding"];
    return true;
  }
  const bool is_refused = verdict.status == Status::refused;
  refused_in_a_row_ = is_refused ? refused_in_a_row_ + 1 : 0;
  if (!is_refused) return false;
  ++report_.skipped["refused: " + verdict.detail];
  if (refused_in_a_row_ == kRefusedMax)
    report_.problem = Error{
        ErrorCode::cannot_run,
        fmt::format("the subject refused {} programs in a row: {}", kRefusedMax, verdict.detail)};
  return true;
}

// A group that was seen before counts; the first program of another one is made small.
void SubjectHunt::note(const DrawnCase& drawn, const Verdict& verdict) {
  SubjectFinding seen = make(drawn.program, drawn.id, verdict);
  SubjectFinding* const old = seen_before(verdict);
  if (old != nullptr) {
    ++old->seen[search_];
    if (old->is_minimized() || old->is_flaky()) return;
    seen.runs = old->runs;
    seen.same_runs = old->same_runs;
  }
  if (is_renamed(verdict)) return;
  if (old == nullptr) confirm(seen);
  if (wants_minimizing(seen)) minimize(seen, &drawn.choices);
  file(std::move(seen), verdict);
}

// Whether the small programs of this group were of another one often enough; then it counts there.
bool SubjectHunt::is_renamed(const Verdict& verdict) {
  const auto at = renamed_.find(verdict.group());
  if (at == renamed_.end() || at->second.tries < kRenamedMax) return false;
  const auto is_its = [&](const SubjectFinding& one) {
    return one.verdict.group() == at->second.group;
  };
  const auto other = std::ranges::find_if(report_.findings, is_its);
  if (other != report_.findings.end()) ++other->seen[search_];
  return true;
}

// Under the group of its small program, which need not be that of the drawn one.
void SubjectHunt::file(SubjectFinding finding, const Verdict& drawn) {
  if (finding.verdict.group() != drawn.group()) {
    Renamed& renamed = renamed_[drawn.group()];
    ++renamed.tries;
    renamed.group = finding.verdict.group();
  }
  if (SubjectFinding* const old = seen_before(finding.verdict)) {
    if (finding.verdict.group() == drawn.group())
      finding.seen = old->seen;
    else
      ++old->seen[search_];
    if (!old->is_minimized()) *old = merged(*old, finding);
    return;
  }
  report_.findings.push_back(std::move(finding));
  save(report_.findings.back());
}

// Of this hunt; one of an earlier hunt or of another process is taken over.
SubjectFinding* SubjectHunt::seen_before(const Verdict& verdict) {
  const auto is_its = [group = verdict.group()](const SubjectFinding& one) {
    return one.verdict.group() == group;
  };
  auto& mine = report_.findings;
  if (const auto at = std::ranges::find_if(mine, is_its); at != mine.end()) return &*at;
  auto& earlier = report_.earlier;
  if (const auto at = std::ranges::find_if(earlier, is_its); at != earlier.end()) {
    mine.push_back(std::move(*at));
    earlier.erase(at);
    return &mine.back();
  }
  if (folder_ == nullptr) return nullptr;
  SubjectFinding probe{.engine = subject_.command().engine,
                       .settings = subject_.command().settings,
                       .versions = {},
                       .verdict = verdict};
  auto there = folder_->find(probe.file_stem());
  if (!there || !*there) return nullptr;
  mine.push_back(std::move(**there));
  return &mine.back();
}

SubjectFinding SubjectHunt::make(const program::Program& program, CaseId id,
                                 const Verdict& verdict) const {
  SubjectFinding finding{.engine = subject_.command().engine,
                         .settings = subject_.command().settings,
                         .versions = subject_.hello().versions,
                         .verdict = verdict,
                         .id = id,
                         .program = program,
                         .seen = {}};
  finding.seen[search_] = 1;
  return finding;
}

// The run that found it is the first one.
void SubjectHunt::confirm(SubjectFinding& finding) {
  finding.runs = 1;
  finding.same_runs = 1;
  while (finding.runs < kConfirmingRuns) {
    const auto verdict = compare(finding.program);
    if (!verdict) return;
    ++finding.runs;
    if (verdict->signature == finding.verdict.signature) ++finding.same_runs;
  }
}

// They are findings, too. Those that are known stay as they are: each would meet others.
void SubjectHunt::note_others(CaseId id) {
  while (!others_.empty()) {
    const auto [program, verdict] = others_.extract(others_.begin()).mapped();
    if (seen_before(verdict) != nullptr || report_.problem) continue;
    SubjectFinding finding = make(program, id, verdict);
    confirm(finding);
    if (!verdict.known && wants_minimizing(finding)) minimize(finding, nullptr);
    file(std::move(finding), verdict);
  }
}

void SubjectHunt::save(SubjectFinding& finding) {
  if (folder_ == nullptr || report_.problem) return;
  if (auto saved = folder_->save(finding); !saved) report_.problem = saved.error();
}

// Also after a problem of the subject: what was found is kept.
void SubjectHunt::save_all() {
  if (folder_ == nullptr) return;
  for (SubjectFinding& finding : report_.findings)
    if (auto saved = folder_->save(finding); !saved && !report_.problem)
      report_.problem = saved.error();
  for (const Result<void>& saved : {folder_->save_progress(search_, report_.total),
                                    folder_->save_features(search_, cases_.fingerprint(), mine_)})
    if (!saved && !report_.problem) report_.problem = saved.error();
}

std::string Repetition::text() const {
  if (same_runs > 0) return fmt::format("in {} of {} runs", same_runs, runs);
  if (verdict.is_finding()) return "otherwise: " + verdict.signature;
  const std::string status(name_of(verdict.status));
  return verdict.detail.empty() ? status : status + ": " + verdict.detail;
}

Result<Repetition> repeat(SubjectProcess& subject, const SubjectFinding& finding, int runs) {
  Repetition repetition;
  while (repetition.runs < runs) {
    auto verdict = subject.compare(finding.program);
    if (!verdict) return tl::unexpected(verdict.error());
    if (verdict->status == Status::stopped) break;
    ++repetition.runs;
    if (verdict->signature == finding.verdict.signature) ++repetition.same_runs;
    repetition.verdict = std::move(*verdict);
  }
  return repetition;
}

}  // namespace zeroproof::subject
