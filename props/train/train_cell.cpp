#include "props/train/train_cell.h"

#include <fmt/format.h>

#include <array>

#include "model/nearest_name.h"

namespace zeroproof::train {
namespace {

constexpr std::array<std::string_view, 4> kPrecisions = {"float32", "bf16", "fp16", "autocast"};

}  // namespace

std::string_view precision_name(Precision precision) {
  return kPrecisions[static_cast<std::size_t>(precision)];
}

std::string_view backward_name(BackwardKind backward) {
  return backward == BackwardKind::engine ? "engine" : "tensor";
}

std::string_view data_name(DataMode data) {
  return data == DataMode::exact ? "exact" : "real";
}

Result<Precision> precision_of(std::string_view name) {
  for (std::size_t i = 0; i < kPrecisions.size(); ++i)
    if (kPrecisions[i] == name) return static_cast<Precision>(i);
  return fail(ErrorCode::usage,
              fmt::format("unknown dtype '{}': {}", name, did_you_mean(name, kPrecisions)));
}

DType model_dtype(Precision precision) {
  if (precision == Precision::bf16) return DType::bfloat16;
  return precision == Precision::fp16 ? DType::float16 : DType::float32;
}

DType wire_dtype(Precision precision) {
  return precision == Precision::autocast ? DType::bfloat16 : model_dtype(precision);
}

std::string flags_of(const TrainCell& cell) {
  std::string flags = fmt::format(
      "--scenario {} --stage {} --world-size {} --dtype {} --backward {} --data {} --steps {}",
      cell.scenario, cell.stage, cell.world_size, precision_name(cell.precision),
      backward_name(cell.backward), data_name(cell.data), cell.steps);
  if (cell.policy != "exact") flags += " --policy " + cell.policy;
  if (cell.sim)
    flags += fmt::format(" --runtime sim --scheduler {} --schedule-seed {}{}", cell.sim->scheduler,
                         cell.sim->seed, cell.sim->preempts ? "" : " --no-preemption");
  if (cell.gpus) flags += " --runtime cuda";
  if (cell.gpus && cell.collectives == CudaCollectives::nccl) flags += " --collectives nccl";
  if (!cell.device.is_cpu() && !cell.gpus) flags += " --device cuda";
  if (cell.order_seed) flags += fmt::format(" --order-seed {}", *cell.order_seed);
  if (!cell.quirks.is_empty()) flags += " --quirks " + cell.quirks.text();
  if (cell.api == AutogradApi::none) flags += " --autograd-api none";
  if (cell.api == AutogradApi::no_callback) flags += " --autograd-api no_callback";
  return flags;
}

}  // namespace zeroproof::train
