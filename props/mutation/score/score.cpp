#include "props/mutation/score/score.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <numeric>
#include <stdexcept>

#include "zeroproof/props/property.h"

namespace zeroproof::mutation {
namespace {

// What a mutant's process exits with; what killed it is in its pipe.
constexpr int kSurvived = 0;
constexpr int kKilled = 1;
constexpr int kUnsaid = 2;

struct Child {
  std::size_t result = 0;
  int output = -1;
};

// What a mutant breaks may say so, in words that would be taken for ours.
void be_quiet() {
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
}

// The child's side: runs until a property is falsified.
int run_until_killed(const Corpus& corpus, const std::vector<std::size_t>& runs, int mutant,
                     int output) {
  std::string by;
  try {
    for (const std::size_t run : runs)
      if (const auto falsified = run_mutant(corpus.runs[run], mutant)) {
        by = falsified->property->number;
        break;
      }
  } catch (...) {
    by = "exception";
  }
  if (by.empty()) return kSurvived;
  return ::write(output, by.data(), by.size()) < 0 ? kUnsaid : kKilled;
}

class Scorer {
 public:
  Scorer(const Corpus& corpus, const ScoreOptions& options) : corpus_(corpus), options_(options) {
    by_time_.resize(corpus.runs.size());
    std::iota(by_time_.begin(), by_time_.end(), std::size_t{0});
    std::ranges::stable_sort(by_time_, {}, [&](std::size_t i) { return corpus.runs[i].seconds; });
  }

  Score run() {
    const std::vector<const StatementMutant*> mutants = wanted();
    const std::size_t count =
        options_.sample == 0 ? mutants.size() : std::min(options_.sample, mutants.size());
    for (std::size_t i = 0; i < count && !has_to_stop(); ++i) {
      score_.results.push_back({.mutant = mutants[i * mutants.size() / count]});
      start(score_.results.size() - 1);
      while (children_.size() >= options_.workers) reap();
    }
    while (!children_.empty()) reap();
    score_.is_interrupted = has_to_stop();
    return std::move(score_);
  }

 private:
  bool has_to_stop() const { return options_.should_stop && options_.should_stop(); }

  std::vector<const StatementMutant*> wanted() const {
    std::vector<const StatementMutant*> mutants;
    for (const StatementMutant& mutant : mutant_table())
      if (options_.numbers.empty() ||
          std::ranges::find(options_.numbers, mutant.number) != options_.numbers.end())
        mutants.push_back(&mutant);
    return mutants;
  }

  // The shorter half of what there is room for, then the others evenly spread.
  std::vector<std::size_t> runs_of(int mutant) const {
    std::vector<std::size_t> reaching;
    for (const std::size_t run : by_time_)
      if (corpus_.runs[run].reached[static_cast<std::size_t>(mutant)] != 0) reaching.push_back(run);
    if (reaching.size() <= options_.runs_max) return reaching;
    const std::size_t first = options_.runs_max / 2;
    const std::size_t rest = options_.runs_max - first;
    std::vector<std::size_t> chosen(reaching.begin(),
                                    reaching.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t i = 0; i < rest; ++i)
      chosen.push_back(reaching[first + i * (reaching.size() - first) / rest]);
    return chosen;
  }

  void start(std::size_t index) {
    MutantResult& result = score_.results[index];
    const std::vector<std::size_t> runs = runs_of(result.mutant->number);
    result.runs = runs.size();
    if (runs.empty()) return count_done();
    std::array<int, 2> ends = {};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("score: no pipe can be made");
    const pid_t process = ::fork();
    if (process == 0) {
      ::alarm(options_.limit_seconds);
      ::signal(SIGALRM, SIG_DFL);
      ::close(ends[0]);
      be_quiet();
      ::_exit(run_until_killed(corpus_, runs, result.mutant->number, ends[1]));
    }
    ::close(ends[1]);
    if (process < 0) throw std::runtime_error("score: no process can be started");
    children_[process] = {index, ends[0]};
  }

  void reap() {
    int status = 0;
    const pid_t process = ::wait(&status);
    const auto at = children_.find(process);
    if (at == children_.end()) return;
    MutantResult& result = score_.results[at->second.result];
    std::array<char, 16> by = {};
    const ssize_t got = ::read(at->second.output, by.data(), by.size());
    ::close(at->second.output);
    if (WIFSIGNALED(status)) {
      result.by = WTERMSIG(status) == SIGALRM ? "time limit" : "crash";
    } else if (WEXITSTATUS(status) != kSurvived) {
      result.by = got > 0 ? std::string(by.data(), static_cast<std::size_t>(got)) : "exit";
    }
    result.verdict = result.by.empty() ? MutantVerdict::survived : MutantVerdict::killed;
    children_.erase(at);
    count_done();
  }

  void count_done() {
    ++done_;
    if (options_.on_progress) options_.on_progress(done_, score_.count(MutantVerdict::killed));
  }

  const Corpus& corpus_;
  const ScoreOptions& options_;
  std::vector<std::size_t> by_time_;
  std::map<pid_t, Child> children_;
  std::size_t done_ = 0;
  Score score_;
};

}  // namespace

std::size_t Score::count(MutantVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(results, verdict, &MutantResult::verdict));
}

Score score(const Corpus& corpus, const ScoreOptions& options) {
  return Scorer(corpus, options).run();
}

}  // namespace zeroproof::mutation
