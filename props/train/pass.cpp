#include "props/train/pass.h"

#include <cmath>

#include "props/train/scenario.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

constexpr std::int64_t kRows = 2;
constexpr double kVocabulary = 7.0;

// Where a mean over three ranks has to be exact.
double exact_multiple(const TrainCell& cell) {
  return cell.data_ranks() == 3 && cell.stage == 3 ? 3.0 : 1.0;
}

std::vector<double> random_values(std::uint64_t seed, std::int64_t count) {
  nn::InitStream stream(seed);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(stream.uniform(1.0));
  return values;
}

}  // namespace

baseline::ExactData exact_data_of(const TrainScenario& scenario, const TrainCell& cell) {
  const std::int64_t contributions = scenario.forwards * cell.data_ranks() * scenario.uses;
  return {wire_dtype(cell.precision), contributions};
}

Pass::Pass(const TrainScenario& scenario, const TrainCell& cell, TrainTarget& target,
           std::int64_t step)
    : scenario_(scenario), cell_(cell), target_(target), step_(step) {}

TensorList Pass::next_inputs() {
  return inputs_of(next_forward_++);
}

TensorList Pass::inputs_of(std::int64_t forward) {
  const DType dtype = model_dtype(cell_.precision);
  const std::int64_t at = step_ * 100 + forward;
  const auto seed = static_cast<std::uint64_t>(1000 + at * 16 + target_.rank());
  const ModelKind kind = scenario_.models.front();
  TensorList inputs;
  if (takes_row_numbers(kind)) {
    std::vector<double> rows = random_values(seed, kRows);
    for (double& row : rows) row = std::floor((row + 1.0) / 2.0 * kVocabulary);
    inputs.push_back(Tensor::of(rows, {kRows}, DType::float32));
  } else if (cell_.data == DataMode::exact) {
    inputs.push_back(Tensor::full({kRows}, 0.0, dtype));
  } else {
    const std::int64_t width = input_width(kind);
    inputs.push_back(Tensor::of(random_values(seed, kRows * width), {kRows, width}, dtype));
  }
  if (cell_.data == DataMode::exact) {
    const std::int64_t contribution = forward * cell_.data_ranks() + target_.rank();
    const double value = exact_data_of(scenario_, cell_).value(contribution * scenario_.uses);
    inputs.push_back(Tensor::full({}, value * exact_multiple(cell_), dtype));
  }
  if (!cell_.device.is_cpu())
    for (Tensor& input : inputs) input = input.on(cell_.device);
  return inputs;
}

TensorList Pass::next_batch(std::int64_t examples) {
  const std::int64_t forward = next_forward_++;
  std::vector<TensorList> slices;
  for (std::int64_t i = 0; i < examples; ++i) {
    const TensorList inputs = inputs_of(forward);
    slices.resize(inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k)
      slices[k].push_back(mul(autograd(), inputs[k], 1.0 / static_cast<double>(1 + i)));
  }
  TensorList batch;
  for (const TensorList& slice : slices) batch.push_back(stack(autograd(), slice, 0));
  return batch;
}

Tensor Pass::forward(std::size_t engine) {
  return target_.forward(engine, next_inputs()).at(0);
}

Tensor Pass::loss_of(const TensorList& outputs) {
  return mean_loss(autograd(), cell_.data, outputs);
}

void Pass::differentiate(const Tensor& loss, bool retain_graph, std::size_t engine) {
  if (!is_manual()) {
    target_.backward(engine, loss, {.retain_graph = retain_graph});
    return;
  }
  const bool is_scaled = target_.needs_scaler(engine);
  const Tensor root = is_scaled ? target_.scale(engine, loss, retain_graph) : loss;
  target_.tensor_backward({root}, {}, retain_graph);
}

void Pass::step() {
  for (std::size_t engine = 0; engine < scenario_.engines(); ++engine) target_.step(engine);
}

}  // namespace zeroproof::train
