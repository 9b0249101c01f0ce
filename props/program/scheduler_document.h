#pragma once

#include <string>

#include "zeroproof/engine/schedule/scheduler_config.h"

namespace zeroproof::program {

// The section /scheduler, as JSON, that is read as this configuration, with every option.
std::string scheduler_document(const SchedulerConfig& config);

}  // namespace zeroproof::program
