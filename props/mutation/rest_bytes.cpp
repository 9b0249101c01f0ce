#include "props/mutation/rest_bytes.h"

#include <algorithm>
#include <vector>

#include "props/mutation/case_parameters.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof::mutation {
namespace {

using train::Precision;

constexpr std::int64_t kAllocationAlignment = 2;  // elements of one slice
constexpr std::int64_t kMasterBytes = 4;

struct Tensors {
  std::vector<std::int64_t> trained;  // elements of each
  std::vector<std::int64_t> frozen;
};

Tensors tensors_of(const train::CaseSpec& spec) {
  Tensors tensors;
  for (const train::LayerSpec& layer : spec.layers) {
    const bool is_weight_frozen = layer.is_frozen + layer.is_weight_frozen != 0;
    for (int weight = 0; weight < 1 + layer.has_twin; ++weight)
      (is_weight_frozen ? tensors.frozen : tensors.trained).push_back(layer.outputs * layer.inputs);
    if (layer.has_bias != 0)
      (layer.is_frozen != 0 ? tensors.frozen : tensors.trained).push_back(layer.outputs);
  }
  return tensors;
}

std::int64_t rounded_up(std::int64_t elements, std::int64_t unit) {
  return (elements + unit - 1) / unit * unit;
}

bool is_known(const train::CaseSpec& spec) {
  const auto stays = [](const train::MicroSpec& micro) {
    return micro.keeps != 0 || micro.creates != 0 || train::has_abort(micro) ||
           train::is_refused_late(micro) || micro.idle_forward != 0 || micro.throws != 0;
  };
  const bool has_one_dtype = static_cast<Precision>(spec.precision) != Precision::autocast &&
                             spec.masters == 0 && spec.accumulates_float32 == 0 &&
                             spec.is_wire_float32 + spec.is_wire_narrow == 0;
  return has_one_dtype && spec.engines == 1 && spec.groups == 1 && has_layers_alone(spec) &&
         spec.skips_frames == 0 && (spec.stage < 3 || spec.persistence == 0) &&
         std::ranges::none_of(spec.micros, stays);
}

// Of one trained element, beside its weight.
std::int64_t state_bytes(const train::CaseSpec& spec, std::int64_t model_bytes) {
  if (spec.is_offloaded != 0) return 0;
  const ZeroConfig config = *train::cell_of(spec).config;
  const bool has_momentum = config.optimizer.sgd.momentum != 0.0;
  const std::int64_t moments = spec.is_sgd == 0 ? 2 : (has_momentum ? 1 : 0);
  return model_bytes + kMasterBytes * (1 + moments);
}

}  // namespace

std::optional<std::int64_t> bytes_at_rest(const train::CaseSpec& spec) {
  if (!is_known(spec)) return std::nullopt;
  const auto precision = static_cast<Precision>(spec.precision);
  const std::int64_t model_bytes = item_bytes(train::model_dtype(precision));
  const std::int64_t each = state_bytes(spec, model_bytes);
  const Tensors tensors = tensors_of(spec);
  std::int64_t trained = 0;
  for (const std::int64_t elements : tensors.trained) trained += elements;
  if (spec.stage == 0) return rounded_up(trained, kAllocationAlignment) * (model_bytes + each);
  if (spec.stage < 3) {
    const std::int64_t flat = rounded_up(trained, kAllocationAlignment * spec.ranks);
    const std::int64_t bucket = std::min<std::int64_t>(spec.bucket, trained + 1);
    const std::int64_t buckets = spec.is_scattered != 0 ? 0 : 1 + spec.has_overlap;
    return flat * model_bytes + flat / spec.ranks * each + buckets * bucket * model_bytes;
  }
  const std::int64_t weight_bytes = spec.offloads_params != 0 ? 0 : model_bytes;
  std::int64_t bytes = 0;
  for (const std::int64_t elements : tensors.trained)
    bytes += rounded_up(elements, spec.ranks) / spec.ranks * (weight_bytes + each);
  for (const std::int64_t elements : tensors.frozen)
    bytes += rounded_up(elements, spec.ranks) / spec.ranks * weight_bytes;
  return bytes;
}

}  // namespace zeroproof::mutation
