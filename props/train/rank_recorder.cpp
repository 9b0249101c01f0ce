#include "props/train/rank_recorder.h"

namespace zeroproof::train {

Result<std::unique_ptr<RankRecorder>> RankRecorder::create(const std::string& path,
                                                           const HeaderRecord& header,
                                                           bool is_stage0) {
  auto writer = TraceWriter::create(path);
  if (!writer) return tl::unexpected(writer.error());
  auto recorder = std::make_unique<RankRecorder>(std::move(*writer), header, is_stage0);
  TraceWriter& file = recorder->writer_;
  recorder->keep(file.add(header));
  recorder->keep(file.add(ThreadRecord{0, "MainThread", true}));
  GroupRecord world{.name = "world", .ranks = std::vector<std::int32_t>()};
  GroupRecord named{.name = "g", .ranks = {}};
  for (std::int32_t rank = 0; rank < header.world; ++rank) {
    world.ranks->push_back(rank);
    named.name += (rank == 0 ? "" : "_") + std::to_string(rank);
  }
  named.ranks = world.ranks;
  recorder->keep(file.add(world));
  recorder->keep(file.add(named));
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

Result<void> RankRecorder::declare(nn::Module& module, const std::string& prefix, DType dtype) {
  for (const nn::NamedParameter& parameter : module.named_parameters()) {
    keep(writer_.add(ParamRecord{.id = next_param_++,
                                 .name = prefix + parameter.name,
                                 .shape = parameter.tensor.sizes(),
                                 .dtype = std::string(dtype_name(dtype)),
                                 .requires_grad = parameter.tensor.requires_grad()}));
  }
  if (error_) return tl::unexpected(*error_);
  return {};
}

void RankRecorder::on_event(const HookEvent& event) {
  keep(writer_.add(event, names_));
}

void RankRecorder::keep(Result<void> written) {
  if (!written && !error_) error_ = written.error();
}

}  // namespace zeroproof::train
