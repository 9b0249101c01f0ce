#include "props/mutation/case_parameters.h"

#include <fmt/format.h>

#include "props/train/generated_model.h"

namespace zeroproof::mutation {

using train::CaseSpec;

std::string_view without_engine(std::string_view name) {
  if (name.starts_with("e1.")) name.remove_prefix(3);
  return name;
}

bool has_layers_alone(const CaseSpec& spec) {
  return spec.experts + spec.owns == 0;
}

std::int64_t elements_of_parameter(const CaseSpec& spec, std::string_view name) {
  const bool is_bias = name.ends_with("bias");
  name = without_engine(name);
  // Both experts are two by two.
  if (name.starts_with(train::GeneratedModel::kExperts)) return is_bias ? 2 : 4;
  if (name == CaseSpec::kOwned) return CaseSpec::kOwnedElements;
  const std::optional<std::size_t> index = layer_of_name(name);
  if (!index) return 0;
  const train::LayerSpec& layer = spec.layers.at(*index);
  return is_bias ? layer.outputs : layer.inputs * layer.outputs;
}

std::string module_of_layer(const CaseSpec& spec, std::size_t layer) {
  return fmt::format("l{}{}", layer, spec.layers.at(layer).is_raw != 0 ? "" : ".linear");
}

// Small ones, in their order, as far as the room for them goes.
bool is_persistent_parameter(const CaseSpec& spec, std::string_view name) {
  std::int64_t total = 0;
  if (spec.skips_frames != 0) return false;
  name = without_engine(name);
  const auto persists = [&](const std::string& other, std::int64_t elements) {
    if (elements > spec.persistence || elements + total > spec.persistence_all) return false;
    total += elements;
    return other == name;
  };
  if (spec.owns != 0 && persists(CaseSpec::kOwned, CaseSpec::kOwnedElements)) return true;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const train::LayerSpec& layer = spec.layers[i];
    const std::string owner = module_of_layer(spec, i);
    if (persists(owner + ".weight", layer.inputs * layer.outputs)) return true;
    const std::string twin = owner + "." + CaseSpec::kTwin;
    if (layer.has_twin != 0 && persists(twin, layer.inputs * layer.outputs)) return true;
    if (layer.has_bias != 0 && persists(owner + ".bias", layer.outputs)) return true;
  }
  for (int expert = 0; spec.experts != 0 && expert < 2; ++expert)
    if (persists(fmt::format("{}.e{}.linear.weight", CaseSpec::kExperts, expert), 4)) return true;
  return false;
}

// What a layer returned, somebody else may use.
bool may_stay_whole(const CaseSpec& spec, std::string_view name) {
  const bool is_returned = spec.returns != 0 && name == fmt::format("l{}.weight", spec.returns - 1);
  return is_returned || is_persistent_parameter(spec, name);
}

std::optional<std::size_t> layer_of_name(std::string_view name) {
  const bool is_layer = name.size() > 1 && name[0] == 'l' && name[1] >= '0' && name[1] <= '9';
  if (!is_layer) return std::nullopt;
  return static_cast<std::size_t>(std::stoi(std::string(name.substr(1))));
}

}  // namespace zeroproof::mutation
