#include "props/train/rank_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "zeroproof/internal/engine/runtime/host/group_layout.h"

namespace zeroproof::train {

namespace {

GroupRecord named(const std::vector<std::int32_t>& ranks) {
  return {.name = fmt::format("g{}", fmt::join(ranks, "_")), .ranks = ranks};
}

}  // namespace

std::vector<GroupRecord> world_groups(std::int32_t world) {
  std::vector<std::int32_t> all;
  for (std::int32_t rank = 0; rank < world; ++rank) all.push_back(rank);
  return {{.name = "world", .ranks = all}, named(all)};
}

std::vector<GroupRecord> groups_within(const TrainCell& cell, std::int32_t rank) {
  std::vector<GroupRecord> groups;
  if (cell.tensor_degree == 1) return groups;
  for (const GroupKind kind : {GroupKind::data, GroupKind::tensor})
    for (const std::vector<int>& ranks :
         group_layout(kind, cell.world_size, {.tensor = cell.tensor_degree}))
      if (std::ranges::find(ranks, rank) != ranks.end() &&
          std::cmp_less(ranks.size(), cell.world_size))
        groups.push_back(named(ranks));
  return groups;
}

std::vector<ParamRecord> declared_params(const TrainScenario& scenario, const TrainCell& cell) {
  std::vector<ParamRecord> params;
  for (std::size_t engine = 0; engine < scenario.models.size(); ++engine) {
    const auto model = make_model(scenario.models[engine], {.data = cell.data});
    for (const nn::NamedParameter& parameter : model->named_parameters())
      params.push_back({.id = static_cast<std::int64_t>(params.size()),
                        .name = engine_prefix(engine) + parameter.name,
                        .shape = parameter.tensor.sizes(),
                        .dtype = std::string(dtype_name(model_dtype(cell.precision))),
                        .requires_grad = parameter.tensor.requires_grad()});
  }
  return params;
}

Result<std::unique_ptr<RankRecorder>> RankRecorder::create(const std::string& path,
                                                           const HeaderRecord& header,
                                                           bool is_stage0) {
  auto writer = TraceWriter::create(path);
  if (!writer) return tl::unexpected(writer.error());
  auto recorder = std::make_unique<RankRecorder>(std::move(*writer), header, is_stage0);
  TraceWriter& file = recorder->writer_;
  recorder->keep(file.add(header));
  recorder->keep(file.add(ThreadRecord{0, "MainThread", true}));
  for (const GroupRecord& group : world_groups(header.world)) recorder->keep(file.add(group));
  return recorder;
}

RankRecorder::RankRecorder(TraceWriter writer, const HeaderRecord& header, bool is_stage0)
    : writer_(std::move(writer)),
      journal_(*this, names_, header.rank),
      models_(journal_, is_stage0) {}

RankRecorder::~RankRecorder() = default;

Result<void> RankRecorder::finish() {
  if (error_) return tl::unexpected(*error_);
  return writer_.finish();
}

void RankRecorder::on_event(const HookEvent& event) {
  keep(writer_.add(event, names_));
}

void RankRecorder::keep(Result<void> written) {
  if (!written && !error_) error_ = written.error();
}

}  // namespace zeroproof::train
