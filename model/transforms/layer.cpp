#include "model/transforms/layer.h"

#include <utility>

#include "zeroproof/model/autograd.h"

namespace zeroproof {

LowerLayer::LowerLayer(Autograd& autograd)
    : autograd_(autograd),
      frame_(autograd.local().transforms),
      was_grad_enabled_(autograd.local().is_grad_enabled) {
  LocalState& local = autograd.local();
  local.transforms = frame_->below;
  if (frame_->kind == TransformKind::grad && !frame_->is_grad_enabled_below)
    local.is_grad_enabled = false;
}

LowerLayer::~LowerLayer() {
  autograd_.local().transforms = frame_;
  autograd_.local().is_grad_enabled = was_grad_enabled_;
}

NoTransforms::NoTransforms(Autograd& autograd)
    : autograd_(autograd), before_(std::exchange(autograd.local().transforms, nullptr)) {}

NoTransforms::~NoTransforms() {
  autograd_.local().transforms = before_;
}

TransformLevel::TransformLevel(Autograd& autograd, TransformKind kind, std::int64_t batch_size)
    : autograd_(autograd) {
  LocalState& local = autograd.local();
  auto frame = std::make_shared<TransformFrame>();
  frame->kind = kind;
  frame->level = local.transforms ? local.transforms->level + 1 : 1;
  frame->is_grad_enabled_below = local.is_grad_enabled;
  frame->batch_size = batch_size;
  frame->is_alive = std::make_shared<bool>(true);
  frame->below = local.transforms;
  frame_ = frame;
  local.transforms = frame_;
  if (AutogradObserver* observer = autograd.observer()) observer->on_transform_push(*frame_);
}

TransformLevel::~TransformLevel() {
  if (AutogradObserver* observer = autograd_.observer()) observer->on_transform_pop(*frame_);
  *frame_->is_alive = false;
  autograd_.local().transforms = frame_->below;
}

}  // namespace zeroproof
