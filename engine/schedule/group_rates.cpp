#include "engine/schedule/group_rates.h"

namespace zeroproof {

GroupRates rates_of(const OptimizerConfig& optimizer) {
  if (optimizer.type == OptimizerType::sgd) return {.learning_rate = optimizer.sgd.lr};
  return {.learning_rate = optimizer.adam.lr,
          .betas = AdamBetas{optimizer.adam.beta1, optimizer.adam.beta2}};
}

OptimizerConfig with_rates(OptimizerConfig optimizer, const GroupRates& rates) {
  if (optimizer.type == OptimizerType::sgd) {
    optimizer.sgd.lr = rates.learning_rate;
    return optimizer;
  }
  optimizer.adam.lr = rates.learning_rate;
  if (rates.betas) {
    optimizer.adam.beta1 = rates.betas->beta1;
    optimizer.adam.beta2 = rates.betas->beta2;
  }
  return optimizer;
}

}  // namespace zeroproof
