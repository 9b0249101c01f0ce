#include "model/autocast/casts.h"

#include <utility>

#include "model/autograd.h"

namespace zeroproof {

TensorList cast_inputs(Autograd&, CastPolicy, const TensorList& inputs) {
  return inputs;
}

AutocastExclusion::AutocastExclusion(Autograd& autograd)
    : autograd_(autograd),
      was_excluded_(std::exchange(autograd.local().autocast.is_excluded, true)) {}

AutocastExclusion::~AutocastExclusion() {
  autograd_.local().autocast.is_excluded = was_excluded_;
}

}  // namespace zeroproof
