#include "props/train/rank_trace.h"

#include <fmt/format.h>

#include "props/train/rank_recorder.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof::train {
namespace {

HeaderRecord header_of(const TrainScenario& scenario, const TrainCell& cell, int rank) {
  HeaderRecord header;
  header.rank = rank;
  header.world = cell.world_size;
  header.clock.source = "virtual";
  header.producer = {{"tool", "zeroproof train"}, {"device", "cpu"}};
  header.program = scenario.name;
  header.description = scenario.summary;
  header.dtype = precision_name(cell.precision);
  header.policy = cell.policy;
  header.seed = static_cast<std::int64_t>(cell.seed);
  header.stage = cell.stage;
  header.notes = {"zeroproof train " + flags_of(cell)};
  return header;
}

HeaderRecord header_of(const RankFacts& facts) {
  HeaderRecord header;
  header.rank = facts.run.rank;
  header.world = facts.run.world;
  header.clock.source = "virtual";
  header.producer = {{"tool", "zeroproof"}, {"device", "cpu"}};
  header.program = facts.run.program;
  header.dtype = facts.run.dtype;
  header.stage = facts.run.stage;
  return header;
}

}  // namespace

std::string rank_path(const std::string& path, int rank, int world_size) {
  if (world_size == 1) return path;
  const std::size_t folder = path.find_last_of('/') + 1;
  const std::size_t dot = std::min(path.find('.', folder), path.size());
  return fmt::format("{}_r{}{}", path.substr(0, dot), rank, path.substr(dot));
}

RankTraces::RankTraces() = default;
RankTraces::~RankTraces() = default;

Result<std::unique_ptr<RankTraces>> RankTraces::create(const std::string& path,
                                                       const TrainScenario& scenario,
                                                       const TrainCell& cell) {
  auto traces = std::make_unique<RankTraces>();
  traces->ranks_.resize(static_cast<std::size_t>(cell.world_size));
  for (int rank = 0; rank < cell.world_size; ++rank) {
    if (cell.job && cell.job->rank() != rank) continue;
    auto recorder = RankRecorder::create(rank_path(path, rank, cell.world_size),
                                         header_of(scenario, cell, rank), cell.stage == 0);
    if (!recorder) return tl::unexpected(recorder.error());
    for (const GroupRecord& group : groups_within(cell, rank)) (*recorder)->declare(group);
    for (const ParamRecord& param : declared_params(scenario, cell)) (*recorder)->declare(param);
    traces->ranks_[static_cast<std::size_t>(rank)] = std::move(*recorder);
  }
  return traces;
}

Result<std::unique_ptr<RankTraces>> RankTraces::create(const std::string& path,
                                                       const std::vector<RankFacts>& ranks) {
  auto traces = std::make_unique<RankTraces>();
  for (const RankFacts& facts : ranks) {
    auto recorder = RankRecorder::create(rank_path(path, facts.run.rank, facts.run.world),
                                         header_of(facts), facts.run.stage == 0);
    if (!recorder) return tl::unexpected(recorder.error());
    for (const GroupRecord& group : facts.groups) (*recorder)->declare(group);
    for (std::size_t i = 0; i < facts.params.size(); ++i)
      (*recorder)->declare(
          ParamRecord{.id = static_cast<std::int64_t>(i), .name = facts.params[i]});
    traces->ranks_.push_back(std::move(*recorder));
  }
  return traces;
}

std::vector<RankObservers> RankTraces::observers() {
  std::vector<RankObservers> all(ranks_.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank]) all[rank].journal = &ranks_[rank]->journal();
  return all;
}

void RankTraces::attach(std::size_t rank, EngineTarget::Options& options) {
  options.models = &ranks_[rank]->models();
  options.autograd = &ranks_[rank]->models();
}

Result<void> RankTraces::finish() {
  for (const auto& rank : ranks_) {
    if (!rank) continue;
    if (auto written = rank->finish(); !written) return written;
  }
  return {};
}

}  // namespace zeroproof::train
