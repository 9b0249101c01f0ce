#include "props/train/rank_recorder.h"

namespace zeroproof::train {

std::vector<GroupRecord> world_groups(std::int32_t world) {
  GroupRecord all{.name = "world", .ranks = std::vector<std::int32_t>()};
  std::string name = "g";
  for (std::int32_t rank = 0; rank < world; ++rank) {
    all.ranks->push_back(rank);
    name += (rank == 0 ? "" : "_") + std::to_string(rank);
  }
  return {all, {.name = name, .ranks = all.ranks}};
}

std::vector<ParamRecord> declared_params(const TrainScenario& scenario, const TrainCell& cell) {
  std::vector<ParamRecord> params;
  for (std::size_t engine = 0; engine < scenario.models.size(); ++engine) {
    const auto model =
        make_model(scenario.models[engine], {.data = cell.data, .spec = scenario.spec});
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
