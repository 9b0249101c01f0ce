#pragma once

#include <nlohmann/json.hpp>

#include "engine/schedule/scheduler_config.h"

namespace zeroproof::train {

// The section /scheduler that is read as this configuration, with every option.
nlohmann::json scheduler_document(const SchedulerConfig& config);

}  // namespace zeroproof::train
