#pragma once

#include <memory>
#include <string>
#include <vector>

#include "props/train/run_watch.h"

namespace zeroproof::train {

// The order tokens of every rank of a run (docs/reference/trace_format.md section 11), in memory.
class RankTokens final : public RunWatch {
 public:
  RankTokens(int world_size, bool is_stage0);
  ~RankTokens() override;

  std::vector<RankObservers> observers() override;
  void attach(std::size_t rank, EngineTarget::Options& options) override;

  // After the run; one token a line.
  const std::string& of(std::size_t rank) const;

 private:
  class Rank;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace zeroproof::train
