#pragma once

#include <optional>
#include <string>
#include <vector>

#include "props/cli/verb.h"
#include "props/report/engine_report.h"
#include "props/train/engine_case.h"

namespace zeroproof {

// What `explore` was asked for in words that both levels have.
struct ExploreWords {
  std::vector<std::string> scenarios;
  std::string policy;
  std::string scheduler;  // empty: random
  std::string budget;
  std::string workers = "1";
  bool minimizes = true;
};

// `zeroproof explore` of the real engine in the simulated world (docs/reference/train.md). Declares
// the flags that name a cell; the verb hands over when a scenario is one of `zeroproof train`.
class EngineExplore {
 public:
  void declare(Flags& flags);

  // --level decides; without it, whether every word is a training scenario. No name is in both
  // worlds today; a protocol scenario would win.
  bool is_meant(const std::vector<std::string>& scenarios) const;

  Result<VerbResult> run(const ExploreWords& words, Session& session);

  // Of `--level program`, which this class has the flags of.
  bool is_of_programs() const { return level_ == "program"; }
  const std::string& judge() const { return judge_; }

 private:
  Result<void> deal(const ExploreWords& words, train::EngineExplorationOptions& options) const;
  Result<std::vector<train::EngineExplorationOptions>> plan(const ExploreWords& words,
                                                            std::uint64_t seed);
  train::CaseSettings settings(const ExploreWords& words) const;

  std::string level_;
  std::string stage_;
  std::string world_size_;
  std::string dtype_;
  std::string backward_;
  std::string data_;
  std::string steps_;
  std::string quirks_;
  std::string api_;
  std::string config_path_;
  std::string preemption_;
  std::string compute_;
  std::string nodes_;
  std::string judge_;
  std::string faults_;
  std::string faults_max_;
  std::string shards_;
  std::string shard_;
  bool runs_twice_ = false;
  std::optional<std::int64_t> time_ns_;
};

}  // namespace zeroproof
