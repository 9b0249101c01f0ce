#pragma once

#include "props/train/case_spec.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::train {

// The configuration that a case gives to its engines.
ZeroConfig config_of(const CaseSpec& spec);

}  // namespace zeroproof::train
