#pragma once

#include <optional>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof {

struct AdamBetas {
  double beta1 = 0.0;
  double beta2 = 0.0;
  friend bool operator==(const AdamBetas&, const AdamBetas&) = default;
};

// The numbers of a parameter group that may change while it is trained.
struct GroupRates {
  double learning_rate = 0.0;
  std::optional<AdamBetas> betas;  // SGD has none
  friend bool operator==(const GroupRates&, const GroupRates&) = default;
};

GroupRates rates_of(const OptimizerConfig& optimizer);

// The optimizer with these numbers in place of its own.
OptimizerConfig with_rates(OptimizerConfig optimizer, const GroupRates& rates);

}  // namespace zeroproof
