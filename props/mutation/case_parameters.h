#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "props/train/case_spec.h"

namespace zeroproof::mutation {

// The module that owns a layer's parameters, as the first engine's events name it.
std::string module_of_layer(const train::CaseSpec& spec, std::size_t layer);

// A name in events as the first engine's are.
std::string_view without_engine(std::string_view name);

// Whether all its parameters are of layers, and none of experts or the root.
bool has_layers_alone(const train::CaseSpec& spec);

// Elements of a parameter of a case by its name in events ("e1.l2.linear.bias", "l2.weight").
std::int64_t elements_of_parameter(const train::CaseSpec& spec, std::string_view name);

// Whether stage 3 keeps it whole from step to step.
bool is_persistent_parameter(const train::CaseSpec& spec, std::string_view name);

// Whether it may be whole where nothing of its engine's runs.
bool may_stay_whole(const train::CaseSpec& spec, std::string_view name);

// Of a name of a module or a parameter: "l2.linear" and "l2.weight" are of the third layer; none:
// the name is of no layer, or the second engine's.
std::optional<std::size_t> layer_of_name(std::string_view name);

}  // namespace zeroproof::mutation
