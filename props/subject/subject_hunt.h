#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "props/subject/candidates.h"
#include "props/subject/finding.h"
#include "props/subject/finding_folder.h"
#include "props/subject/subject_cases.h"
#include "props/subject/subject_process.h"

namespace zeroproof::subject {

struct HuntOptions {
  std::uint64_t seed = 0;
  std::uint64_t first = 0;  // the number of the first case
  // Of the cases, those whose number has this remainder.
  std::uint64_t shard = 0;
  std::uint64_t shards = 1;
  // Of so many candidates a case, the one runs whose features are the rarest so far.
  std::uint64_t candidates = kUsualCandidates;
  std::uint64_t first_candidate = 0;
  std::uint64_t cases_max = 300;
  std::int64_t time_max_ns = INT64_MAX;
  bool minimizes = true;
  // Findings that the subject knows are made small as well, by their signature alone. The small
  // program then says which known finding it is.
  bool minimizes_known = false;
  // Programs that may show a known finding do not run, so that a common one hides no other.
  KnownCauses known_causes = KnownCauses::run;
  std::size_t shrink_runs = 300;                  // of the subject, a finding
  std::int64_t shrink_time_ns = 300'000'000'000;  // the same
};

// What a hunt did.
struct HuntReport {
  std::uint64_t cases = 0;  // compared
  std::uint64_t runs = 0;   // of the subject: cases, confirmations, minimising
  std::uint64_t hangs = 0;
  std::map<std::string, std::uint64_t> statuses;  // of the cases
  std::map<std::string, std::uint64_t> skipped;   // by what the subject cannot do, or refused
  std::map<std::string, std::uint64_t> may_show;  // skipped: by the known finding
  std::vector<SubjectFinding> findings;           // one a group, as they were seen
  std::vector<SubjectFinding> earlier;            // of the folder, which this hunt has not seen
  SearchProgress total;                           // of this search, with earlier hunts
  // Of the programs of this folder's searches for the same capabilities, this hunt's among them.
  std::uint64_t features = 0;
  double seconds = 0.0;
  std::optional<Error> problem;  // why it ended early: the subject, or the folder
};

// Called by the hunt.
struct HuntWatch {
  std::function<std::int64_t()> now_ns;  // monotonic; never empty
  std::function<bool()> should_stop = {};
  std::function<void(const HuntReport&)> on_run = {};  // after each run of the subject
};

// Draws programs for a subject, runs them, and makes the first program of each signature small. Not
// thread-safe.
class SubjectHunt {
 public:
  // `folder` may be null: findings are not kept. All of them outlive it.
  SubjectHunt(SubjectProcess& subject, const SubjectCases& cases, const FindingFolder* folder,
              const HuntOptions& options, HuntWatch watch)
      : subject_(subject),
        cases_(cases),
        folder_(folder),
        options_(options),
        watch_(std::move(watch)) {}

  HuntReport run();

 private:
  // The tries of making one finding small.
  struct Attempts {
    const SubjectFinding& finding;
    std::size_t runs_max;
    std::int64_t begin_ns;
    std::int64_t time_max_ns;  // since then
    std::size_t runs = 0;
    std::map<std::string, std::optional<Verdict>> tried = {};  // by program; none: another verdict
  };

  // The small programs of a group of drawn programs, which are of another group.
  struct Renamed {
    int tries = 0;
    std::string group;  // of the last try
  };

  bool should_end() const;
  bool is_over() const;
  bool wants_minimizing(const SubjectFinding& finding) const;
  bool begin();
  std::optional<Verdict> compare(const program::Program& program);
  bool run_case(std::uint64_t number);
  void count(const Candidate& candidate, const Verdict& verdict);
  bool is_skipped(const Verdict& verdict);
  bool is_renamed(const Verdict& verdict);
  void file(SubjectFinding finding, const Verdict& drawn);
  void note(const DrawnCase& drawn, const Verdict& verdict);
  SubjectFinding* seen_before(const Verdict& verdict);
  SubjectFinding make(const program::Program& program, CaseId id, const Verdict& verdict) const;
  void confirm(SubjectFinding& finding);
  void minimize(SubjectFinding& finding, const program::Choices* start);
  program::Program shrunk_choices(Attempts& attempts, const program::Choices& start);
  bool is_spent(const Attempts& attempts) const;
  bool is_alike(const Verdict& one, const Verdict& other) const;
  bool still_fails(Attempts& attempts, const program::Program& program);
  void note_others(CaseId id);
  void save(SubjectFinding& finding);
  void save_all();

  SubjectProcess& subject_;
  const SubjectCases& cases_;
  const FindingFolder* folder_;
  HuntOptions options_;
  HuntWatch watch_;
  HuntReport report_;
  std::string search_;  // its name in the folder
  FeatureCounts mine_;  // of this search
  FeatureCounts all_;   // of all searches of the folder for the same capabilities
  std::int64_t start_ns_ = 0;
  int refused_in_a_row_ = 0;
  std::map<std::string, Renamed> renamed_;  // by the group of the drawn program
  // Other findings that minimising met, by their groups.
  std::map<std::string, std::pair<program::Program, Verdict>> others_;
};

// How often a program has the signature of its finding, in so many runs. No part of the finding is
// changed; `verdict` is the last one.
struct Repetition {
  int runs = 0;
  int same_runs = 0;
  Verdict verdict;

  std::string text() const;  // "in 3 of 3 runs", "otherwise: SIGNATURE", "equal"
};
Result<Repetition> repeat(SubjectProcess& subject, const SubjectFinding& finding, int runs);

inline constexpr int kConfirmingRuns = 3;

}  // namespace zeroproof::subject
