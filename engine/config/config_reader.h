#pragma once

#include <string>
#include <string_view>

#include "engine/config/config_section.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof {

// The blocks of a document whose keys are checked. Each throws RejectedValue.
void read_zero_optimization(const ConfigSection& document, ZeroConfig& config);
void read_precision(const ConfigSection& document, ZeroConfig& config);
void read_optimizer(const ConfigSection& document, ZeroConfig& config);
// After the optimizer.
void read_scheduler(const ConfigSection& document, ZeroConfig& config);

std::string in_lower_case(std::string text);

// "adam" or "sgd": which options /optimizer/params may have.
std::string_view optimizer_family(OptimizerType type);
// Adam when the document names none.
OptimizerType read_optimizer_type(const ConfigSection& document);

}  // namespace zeroproof
