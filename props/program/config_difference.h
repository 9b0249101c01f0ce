#pragma once

#include <string>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof::program {

// The ds_config.json of a configuration without the keys that have their default value. "{}" for
// the default configuration; parse_ds_config reads it back.
std::string config_difference(const ZeroConfig& config);

// The same as words for a text: "stage 2, bf16, reduce_bucket_size 8". The stage is always there.
std::string config_words(const ZeroConfig& config);

}  // namespace zeroproof::program
