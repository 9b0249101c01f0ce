#include "model/op.h"

#include <algorithm>
#include <utility>

#include "model/accumulate_grad.h"
#include "model/autocast/casts.h"
#include "model/node_creation.h"
#include "model/transforms/layer.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

// Null when no input needs a gradient. The number is taken before the edges are collected (N2).
std::shared_ptr<OpNode> make_node(Autograd& ag, const Op& op, const TensorList& inputs,
                                  const OpArgs& args) {
  const auto needs_grad = [](const Tensor& x) { return x.is_defined() && x.requires_grad(); };
  if (!op.backward || !ag.is_grad_enabled()) return nullptr;
  if (std::none_of(inputs.begin(), inputs.end(), needs_grad)) return nullptr;
  auto node = std::make_shared<OpNode>(ag, ag.take_sequence_nr(), op, args);
  for (const Tensor& input : inputs)
    node->add_next_edge(input.is_defined() ? gradient_edge(ag, input) : Edge{});
  if (op.save) op.save(*node, inputs);
  return node;
}

void attach(Autograd& ag, const Op& op, const std::shared_ptr<OpNode>& node, TensorList& outputs) {
  if (!node) return;
  for (Tensor& output : outputs) output = with_grad_fn(std::move(output), node);
  if (op.saves_output)
    for (const Tensor& output : outputs) node->save_output(output);
  tell_node_creation(ag, *node);
}

TensorList compute(Autograd& ag, const Op& op, const TensorList& inputs, const OpArgs& args) {
  TensorList outputs = op.forward ? op.forward(ag.ops(), inputs, args)
                                  : TensorList{op.forward_one(ag.ops(), inputs, args)};
  const auto is_accelerated = [](const Tensor& x) {
    return x.is_defined() && !x.device().is_cpu();
  };
  const auto at = std::find_if(inputs.begin(), inputs.end(), is_accelerated);
  if (at != inputs.end())
    for (const Tensor& output : outputs) output.impl().device = at->device();
  return outputs;
}

// Rule T9: PyTorch would read memory that is not there.
void check_no_live_wrapper(const Op& op, const TensorList& inputs) {
  for (const Tensor& input : inputs)
    if (input.is_defined() && input.wrapper())
      throw AutogradError("a tensor of a function transform met " + std::string(op.name) +
                          " outside of its level");
}

TensorList apply_layers(Autograd& ag, const Op& op, const TensorList& inputs, const OpArgs& args);

// Level 0 and every level that differentiates: a node on top of what the layers below return.
TensorList apply_grad_layer(Autograd& ag, const Op& op, const TransformFrame& frame,
                            TensorList inputs, const OpArgs& args) {
  for (Tensor& input : inputs)
    if (input.is_defined() && !is_of_level(input, frame)) input = wrap(frame, input);
  const auto node = make_node(ag, op, inputs, args);
  for (Tensor& input : inputs) input = unwrap(input, frame);
  TensorList outputs;
  {
    const LowerLayer lower(ag);
    outputs = apply_layers(ag, op, inputs, args);
  }
  for (Tensor& output : outputs) output = wrap(frame, output);
  attach(ag, op, node, outputs);
  return outputs;
}

TensorList apply_vmap_layer(Autograd& ag, const Op& op, const TransformFrame& frame,
                            TensorList inputs, const OpArgs& args) {
  std::vector<bool> is_batched;
  for (Tensor& input : inputs) {
    is_batched.push_back(is_of_level(input, frame));
    input = unwrap(input, frame);
  }
  const LowerLayer lower(ag);
  if (std::find(is_batched.begin(), is_batched.end(), true) == is_batched.end())
    return apply_layers(ag, op, inputs, args);
  if (!op.batch) throw AutogradError("vmap: no batching rule for " + std::string(op.name));
  TensorList outputs = op.batch(ag, {inputs, is_batched, frame.batch_size}, args);
  for (Tensor& output : outputs) output = wrap(frame, output);
  return outputs;
}

TensorList apply_jvp_layer(Autograd& ag, const Op& op, const TransformFrame& frame,
                           TensorList inputs, const OpArgs& args) {
  TensorList tangents(inputs.size());
  bool has_tangent = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_of_level(inputs[i], frame)) continue;
    tangents[i] = inputs[i].wrapper()->tangent;
    has_tangent = has_tangent || tangents[i].is_defined();
    inputs[i] = unwrap(inputs[i], frame);
  }
  const LowerLayer lower(ag);
  TensorList outputs = apply_layers(ag, op, inputs, args);
  if (has_tangent && !op.jvp)
    throw AutogradError("Trying to use forward AD with " + std::string(op.name) +
                        " that does not support it");
  TensorList slopes(outputs.size());
  if (has_tangent) slopes = op.jvp(ag, inputs, tangents, outputs, args);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = wrap_with_tangent(frame, outputs[i], slopes[i]);
  return outputs;
}

TensorList apply_layers(Autograd& ag, const Op& op, const TensorList& inputs, const OpArgs& args) {
  if (!ag.local().transforms) {
    check_no_live_wrapper(op, inputs);
    const auto node = make_node(ag, op, inputs, args);
    TensorList outputs = compute(ag, op, inputs, args);
    attach(ag, op, node, outputs);
    return outputs;
  }
  const std::shared_ptr<const TransformFrame> frame = ag.local().transforms;
  switch (frame->kind) {
    case TransformKind::grad:
      return apply_grad_layer(ag, op, *frame, inputs, args);
    case TransformKind::vmap:
      return apply_vmap_layer(ag, op, *frame, inputs, args);
    case TransformKind::jvp:
      break;
  }
  return apply_jvp_layer(ag, op, *frame, inputs, args);
}

// Rule M1.
TensorList apply_under_autocast(Autograd& ag, const Op& op, const TensorList& inputs, OpArgs args) {
  const AutocastExclusion inside(ag);
  if (is_float32_result(ag, op.cast, inputs)) args.result = DType::float32;
  return apply_layers(ag, op, cast_inputs(ag, op.cast, inputs), args);
}

// No level, no cast, no node and no device: most of what a plain backward computes.
bool is_arithmetic_alone(Autograd& ag, const Op& op, std::span<const Tensor> inputs) {
  const LocalState& local = ag.local();
  if (!op.forward_one || local.transforms || local.is_grad_enabled) return false;
  if (op.cast.is_any() && local.autocast.may_cast()) return false;
  return std::all_of(inputs.begin(), inputs.end(), [](const Tensor& input) {
    return input.is_defined() && !input.impl().wrapper && input.impl().device.is_cpu();
  });
}

}  // namespace

TensorList apply(Autograd& ag, const Op& op, TensorList inputs, const OpArgs& args) {
  for (Tensor& input : inputs)
    if (input.is_defined() && input.wrapper()) input = without_dead_wrappers(input);
  if (op.cast.is_any() && ag.local().autocast.may_cast())
    return apply_under_autocast(ag, op, inputs, args);
  return apply_layers(ag, op, inputs, args);
}

Tensor apply_one(Autograd& ag, const Op& op, TensorList inputs, const OpArgs& args) {
  return std::move(apply(ag, op, std::move(inputs), args).front());
}

Tensor apply_one(Autograd& ag, const Op& op, std::initializer_list<Tensor> inputs,
                 const OpArgs& args) {
  if (is_arithmetic_alone(ag, op, inputs)) return op.forward_one(ag.ops(), inputs, args);
  return apply_one(ag, op, TensorList(inputs), args);
}

Tensor with_grad_fn(Tensor result, const std::shared_ptr<Node>& node) {
  if (!node) return result;
  result.impl().output_nr = node->add_input_metadata(result);
  result.impl().grad_fn = node;
  return result;
}

// No gradient arrived, so no gradient goes on; formulas see at least one defined gradient.
TensorList OpNode::apply(TensorList grads) {
  const auto is_defined = [](const Tensor& grad) { return grad.is_defined(); };
  if (std::none_of(grads.begin(), grads.end(), is_defined)) return TensorList(next_edges().size());
  return op_.backward(autograd(), *this, grads);
}

void OpNode::release_saved_tensors() {
  for (SavedTensor& saved : saved_) saved.release();
}

}  // namespace zeroproof
