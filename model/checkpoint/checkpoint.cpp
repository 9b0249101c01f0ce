#include "zeroproof/model/checkpoint/checkpoint.h"

#include <utility>

#include "model/checkpoint/checkpoint_context.h"
#include "model/checkpoint/checkpoint_frame.h"
#include "model/checkpoint/forward_state.h"
#include "model/custom_function.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

struct ReentrantCheckpoint {
  CheckpointBody body;
  ForwardState state;
};

// An output that is an input is a tensor of its own: the node must not take the input for its own.
TensorList without_inputs(TensorList outputs, const TensorList& inputs) {
  for (Tensor& output : outputs)
    for (const Tensor& input : inputs)
      if (output.is_defined() && output.is_same(input)) output = input.shallow_copy();
  return outputs;
}

TensorList detached(const TensorList& tensors) {
  TensorList copies;
  for (const Tensor& tensor : tensors) {
    copies.push_back(tensor.is_defined() ? tensor.detach() : tensor);
    if (tensor.is_defined()) copies.back().set_requires_grad(tensor.requires_grad());
  }
  return copies;
}

// Only outputs that the body computed from something with a gradient.
void backward_through(Autograd& ag, const TensorList& outputs, const TensorList& grads) {
  TensorList roots;
  TensorList root_grads;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_defined() || !outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    root_grads.push_back(grads[i]);
  }
  if (roots.empty())
    throw AutogradError(
        "none of output has requires_grad=True, this checkpoint() is not necessary");
  ag.backward(roots, root_grads);
}

// Rule K2.
TensorList recompute_backward(Autograd& ag, const ReentrantCheckpoint& region,
                              const FunctionContext& context, const TensorList& grads) {
  if (!ag.is_checkpoint_valid())
    throw AutogradError(
        "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing "
        "an `inputs` parameter to .backward(). To resolve this error, you can either set "
        "use_reentrant=False, or call .backward() without passing the `inputs` argument.");
  const TensorList inputs = detached(context.saved_tensors());
  backward_through(ag, region.state.run_again(region.body, inputs), grads);
  TensorList input_grads;
  for (const Tensor& input : inputs)
    input_grads.push_back(input.is_defined() ? input.grad() : Tensor());
  return input_grads;
}

// Rule K1: a custom Function, which runs the body with grad mode off.
TensorList checkpoint_reentrant(Autograd& ag, CheckpointBody body, const TensorList& inputs,
                                const CheckpointOptions& options) {
  const auto region = std::make_shared<const ReentrantCheckpoint>(
      ReentrantCheckpoint{std::move(body), ForwardState(ag, inputs, options.preserves_rng_state)});
  const CustomFunction function{
      .name = "CheckpointFunctionBackward",
      .forward =
          [region](FunctionContext& context, const TensorList& arguments) {
            context.save_for_backward(arguments);
            return without_inputs(region->body(arguments), arguments);
          },
      .backward =
          [&ag, region](FunctionContext& context, const TensorList& grads) {
            return recompute_backward(ag, *region, context, grads);
          }};
  return apply_function(ag, function, inputs);
}

// Rule K4; with grad mode off no tensor is saved.
TensorList checkpoint_non_reentrant(Autograd& ag, CheckpointBody body, const TensorList& inputs,
                                    CheckpointOptions options) {
  options.stops_early = ag.global().checkpoint_early_stop.value_or(options.stops_early);
  const auto frame = std::make_shared<CheckpointFrame>(ag, std::move(body), inputs, options);
  if (!frame->is_recording()) return frame->body()(inputs);
  TensorList outputs;
  {
    const SavedTensorHooksScope hooks(ag, frame->forward_hooks());
    const CheckpointContext& context = frame->contexts().forward;
    if (!run_inside(context, [&] { outputs = frame->body()(inputs); }))
      throw AutogradError(
          "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
          "exception raised during the checkpointed forward. This is not supported because "
          "checkpoint cannot return a value for a failed forward.");
  }
  frame->complete_forward();
  return outputs;
}

}  // namespace

TensorList checkpoint(Autograd& autograd, CheckpointKind kind, CheckpointBody body,
                      const TensorList& inputs, const CheckpointOptions& options) {
  return kind == CheckpointKind::reentrant
             ? checkpoint_reentrant(autograd, std::move(body), inputs, options)
             : checkpoint_non_reentrant(autograd, std::move(body), inputs, options);
}

CheckpointEarlyStop::CheckpointEarlyStop(Autograd& autograd, bool stops_early)
    : autograd_(autograd),
      before_(std::exchange(autograd.global().checkpoint_early_stop, stops_early)) {}

CheckpointEarlyStop::~CheckpointEarlyStop() {
  autograd_.global().checkpoint_early_stop = before_;
}

}  // namespace zeroproof
