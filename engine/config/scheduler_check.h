#pragma once

#include "engine/config/config_section.h"

namespace zeroproof {

// The learning rate stays as it is here; but a /scheduler that DeepSpeed cannot make throws
// RejectedValue.
void check_scheduler(const ConfigSection& document);

}  // namespace zeroproof
