#pragma once

#include <cstdint>
#include <span>

#include "props/program/policy.h"
#include "props/program/source.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::program {

// The values that cases give a member of ZeroConfig, the simplest first; and what an engine is
// asked for besides, as JSON of its key: values that work, values that depend on others, and
// values that none may have. validate() says which is which.
struct ConfigDomain {
  const char* key;  // a JSON pointer into ds_config.json
  int values;
  void (*set)(ZeroConfig& config, int value);
  // Cases of which stages have it (bits), and how often.
  std::uint32_t stages;
  std::uint32_t weight;
  std::span<const char* const> tried;
};

// A row a member, in the order of ZeroConfig. Static.
std::span<const ConfigDomain> config_domains();

// The configuration that every case of the stage begins with: float32 and the defaults, but
// without clipping; in stage 3 no parameter stays whole or is gathered ahead.
ZeroConfig simplest_config(int stage);

// Some members' values; each is taken back that makes the configuration one that no engine has, or
// not the policy's subject. `changes`: how many members, at most.
void draw_config(Source& source, const Policy& policy, int changes, ZeroConfig& config);

// Some members that decide one thing together, or none.
void draw_topic(Source& source, const Policy& policy, ZeroConfig& config);

// The dtypes of a case: float32, fp16, bf16, autocast in bf16, and in float16.
enum class Precision : std::uint8_t { float32, fp16, bf16, autocast, grad_scaler };
void set_precision(ZeroConfig& config, Precision precision);

}  // namespace zeroproof::program
