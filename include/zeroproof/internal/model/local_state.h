#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "zeroproof/model/dtype.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

struct TransformFrame;  // zeroproof/internal/model/transforms/transform_frame.h

// Intercepts what nodes save (rule S1): `pack` runs with grad mode off when a tensor is saved and
// must not modify it; `unpack` runs when the node asks for it.
struct SavedTensorHooks {
  std::function<std::shared_ptr<void>(const Tensor& tensor)> pack;
  std::function<Tensor(const std::shared_ptr<void>& packed)> unpack;
};

// The default hook pairs of a thread; only the innermost one is used.
struct SavedTensorHookFrame {
  SavedTensorHooks hooks;
  std::shared_ptr<const SavedTensorHookFrame> below;
};

// Those who see every node that a thread makes; all of them do, the outermost first.
struct NodeCreationHookFrame {
  std::function<void(Node& node)> hook;
  std::shared_ptr<const NodeCreationHookFrame> below;
};

// Whether operations on one kind of device cast their inputs, and to what.
struct AutocastSetting {
  bool is_enabled = false;
  DType dtype = DType::bfloat16;
  friend bool operator==(const AutocastSetting&, const AutocastSetting&) = default;
};

struct AutocastState {
  AutocastSetting cpu;
  AutocastSetting accelerator{false, DType::float16};
  bool is_excluded = false;  // inside an operation that has cast its inputs already

  AutocastSetting& on(DeviceType device) { return device == DeviceType::cpu ? cpu : accelerator; }
  const AutocastSetting& on(DeviceType device) const {
    return device == DeviceType::cpu ? cpu : accelerator;
  }
  bool may_cast() const { return !is_excluded && (cpu.is_enabled || accelerator.is_enabled); }
};

// What PyTorch keeps per thread and a graph task carries to the thread that runs its nodes
// (docs/spec/autograd.md 15). Cheap to copy while no mode is in force.
struct LocalState {
  bool is_grad_enabled = true;
  AutocastState autocast;
  std::shared_ptr<const TransformFrame> transforms;                  // innermost; null: none
  std::shared_ptr<const SavedTensorHookFrame> saved_tensor_hooks;    // innermost; null: none
  std::shared_ptr<const NodeCreationHookFrame> node_creation_hooks;  // innermost; null: none
};

}  // namespace zeroproof
