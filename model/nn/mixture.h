#pragma once

#include <memory>
#include <vector>

#include "model/functions/indexing.h"
#include "zeroproof/model/nn/mlp.h"

namespace zeroproof::nn {

struct MixtureSizes {
  MlpSizes expert;
  std::int64_t experts = 2;
  std::int64_t top_k = 1;  // 1: weighted with the gate's probability; more: they add up to 1
};

// A mixture of experts without capacity: each token goes to the experts of its largest gates. An
// expert that gets no token does not run, and its parameters get no gradient. "gate",
// "experts.0", ...
class Mixture final : public Module {
 public:
  Mixture(InitStream& init, const MixtureSizes& sizes);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  // The tokens of one expert and where their weights are.
  struct Share {
    std::vector<std::int64_t> tokens;
    std::vector<std::int64_t> weights;
  };

  Share share_of(const Largest& top, std::int64_t expert) const;

  MixtureSizes sizes_;
  std::shared_ptr<Linear> gate_;
  std::vector<std::shared_ptr<Mlp>> experts_;
};

}  // namespace zeroproof::nn
