#include "props/train/decoder_trace.h"

#include <numeric>

#include "props/train/rank_recorder.h"
#include "props/train/rank_trace.h"

namespace zeroproof::train {
namespace {

HeaderRecord header_of(const DecoderCell& cell, std::string_view device, int rank) {
  HeaderRecord header;
  header.rank = rank;
  header.world = cell.world_size;
  header.clock.source = "virtual";
  header.producer = {{"tool", "zeroproof train"}, {"device", std::string(device)}};
  header.program = cell.model;
  header.description = "a decoder on random tokens";
  header.dtype = precision_name(cell.precision);
  header.policy = cell.policy;
  header.seed = static_cast<std::int64_t>(cell.seed);
  header.stage = cell.stage;
  header.notes = {"zeroproof train " + flags_of(cell)};
  return header;
}

void declare_parameters(const DecoderCell& cell, RankRecorder& recorder) {
  std::int64_t id = 0;
  for (const nn::ParameterShape& shape : nn::parameter_shapes(cell.sizes))
    recorder.declare({.id = id++,
                      .name = shape.name,
                      .shape = shape.sizes,
                      .dtype = std::string(dtype_name(model_dtype(cell.precision))),
                      .requires_grad = true});
}

}  // namespace

DecoderTraces::DecoderTraces(int world_size) : ranks_(static_cast<std::size_t>(world_size)) {}
DecoderTraces::~DecoderTraces() = default;

Result<std::unique_ptr<DecoderTraces>> DecoderTraces::create(const std::string& path,
                                                             const DecoderCell& cell,
                                                             std::string_view device,
                                                             const std::vector<int>& ranks) {
  std::vector<int> here = ranks;
  if (here.empty()) {
    here.resize(static_cast<std::size_t>(cell.world_size));
    std::iota(here.begin(), here.end(), 0);
  }
  auto traces = std::make_unique<DecoderTraces>(cell.world_size);
  for (const int rank : here) {
    auto recorder = RankRecorder::create(rank_path(path, rank, cell.world_size),
                                         header_of(cell, device, rank), cell.stage == 0);
    if (!recorder) return tl::unexpected(recorder.error());
    declare_parameters(cell, **recorder);
    traces->ranks_[static_cast<std::size_t>(rank)] = std::move(*recorder);
  }
  return traces;
}

std::vector<RankObservers> DecoderTraces::observers() {
  std::vector<RankObservers> all(ranks_.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank]) all[rank].journal = &ranks_[rank]->journal();
  return all;
}

std::vector<ModelRecorder*> DecoderTraces::recorders() {
  std::vector<ModelRecorder*> all;
  for (const auto& rank : ranks_) all.push_back(rank ? &rank->models() : nullptr);
  return all;
}

Result<void> DecoderTraces::finish() {
  for (const auto& rank : ranks_) {
    if (!rank) continue;
    if (auto written = rank->finish(); !written) return written;
  }
  return {};
}

}  // namespace zeroproof::train
