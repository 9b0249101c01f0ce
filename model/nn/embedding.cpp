#include "model/nn/embedding.h"

#include "model/functions/indexing.h"

namespace zeroproof::nn {

TensorList Embedding::forward(Autograd& ag, const TensorList& inputs) const {
  Indices rows{{}, inputs.at(0).sizes()};
  for (const double row : inputs[0].values()) rows.values.push_back(static_cast<std::int64_t>(row));
  return {embedding(ag, weight, rows)};
}

}  // namespace zeroproof::nn
