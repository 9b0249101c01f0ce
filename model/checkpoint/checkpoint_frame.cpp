#include "model/checkpoint/checkpoint_frame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "model/check.h"
#include "model/checkpoint/checkpoint_context.h"
#include "model/custom_function.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

// A leaf that asks for a gradient, so that the Function gets a node whatever the inputs are.
Tensor recording_leaf() {
  Tensor leaf = Tensor::of({}, {0});
  leaf.set_requires_grad(true);
  return leaf;
}

// The throw-away Function of PyTorch before 2.12: its node saves the inputs like any other node
// would, which is how a surrounding checkpoint gets to see them (rules K4, K9).
CustomFunction input_saver(FunctionContext*& context) {
  return {.name = "_NoopSaveInputsBackward",
          .backward = [](FunctionContext&, const TensorList&) -> TensorList {
            throw AutogradError("Did not expect to backward on this graph");
          },
          .forward_alone = [](const TensorList&) { return TensorList{Tensor::of({}, {0})}; },
          .setup_context =
              [&context](FunctionContext& made, const TensorList& inputs, const TensorList&) {
                made.save_for_backward(inputs);
                context = &made;
              }};
}

}  // namespace

CheckpointFrame::Metadata::Metadata(const Tensor& tensor)
    : sizes(tensor.sizes()), dtype(tensor.dtype()), device(tensor.device()) {}

std::string CheckpointFrame::Metadata::text() const {
  const std::string where =
      device.is_cpu() ? "type='cpu'" : fmt::format("type='cuda', index={}", device.accelerator);
  return fmt::format("{{'shape': torch.Size([{}]), 'dtype': torch.{}, 'device': device({})}}",
                     fmt::join(sizes, ", "), dtype_name(dtype), where);
}

CheckpointFrame::CheckpointFrame(Autograd& autograd, CheckpointBody body, const TensorList& inputs,
                                 const CheckpointOptions& options)
    : autograd_(autograd),
      body_(std::move(body)),
      options_(options),
      is_recording_(autograd.is_grad_enabled()),
      state_(autograd, inputs, options.preserves_rng_state) {
  if (options.contexts) contexts_ = options.contexts();
  save_inputs(inputs);
}

void CheckpointFrame::save_inputs(const TensorList& inputs) {
  if (autograd_.global().release.has(TorchChange::checkpoint_inputs_without_node)) {
    if (is_recording_)
      for (const Tensor& input : inputs) inputs_.emplace_back(autograd_, input, false);
    return;
  }
  TensorList saved = {recording_leaf()};
  saved.insert(saved.end(), inputs.begin(), inputs.end());
  input_keeper_ = apply_function(autograd_, input_saver(input_context_), saved)[0];
}

// A surrounding region recomputes first.
TensorList CheckpointFrame::saved_inputs() const {
  TensorList inputs;
  for (const SavedTensor& saved : inputs_) inputs.push_back(saved.unpack(nullptr));
  if (!input_context_) return inputs;
  inputs = input_context_->saved_tensors();
  inputs.erase(inputs.begin());
  return inputs;
}

SavedTensorHooks CheckpointFrame::forward_hooks() {
  return {.pack = [frame = shared_from_this()](const Tensor& x) { return frame->pack(x); },
          .unpack =
              [frame = shared_from_this()](const std::shared_ptr<void>& holder) {
                return frame->unpack(*static_cast<Holder*>(holder.get()));
              }};
}

std::shared_ptr<void> CheckpointFrame::pack(const Tensor& tensor) {
  auto holder = std::make_shared<Holder>();
  saved_.push_back({holder, Metadata(tensor)});
  return holder;
}

Tensor CheckpointFrame::unpack(Holder& holder) {
  const RecomputeId id = current_recompute();
  if (!recomputes_[id].is_done) recompute(id);
  const auto at = holder.recomputed.find(id);
  if (at == holder.recomputed.end())
    throw CheckpointError("Something went unexpectedly wrong in activation checkpoint.");
  if (!at->second.is_defined())
    throw CheckpointError(
        "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked "
        "once. If you are calling ctx.saved_tensors in backward, make sure to do so only once.");
  return std::exchange(at->second, Tensor());
}

// Rule K5: outside a backward, each unpacking is one of its own.
CheckpointFrame::RecomputeId CheckpointFrame::current_recompute() {
  const GraphTaskId task = autograd_.current_graph_task();
  return task.is_none() ? RecomputeId{next_outside_--} : task;
}

void CheckpointFrame::recompute(RecomputeId id) {
  const TensorList inputs = saved_inputs();
  recomputes_[id].saved = 0;
  try {
    const SavedTensorHooksScope hooks(
        autograd_, {.pack = [this, id](const Tensor& x) { return pack_recomputed(id, x); },
                    .unpack =
                        [](const std::shared_ptr<void>& tensor) {
                          return *static_cast<const Tensor*>(tensor.get());
                        }});
    state_.run_again(
        [this](const TensorList& arguments) {
          run_inside(contexts_.recompute, [&] { body_(arguments); });
          return TensorList{};
        },
        inputs);
  } catch (const StopRecomputation&) {
  }
  recomputes_[id].is_done = true;
  if (may_save_more_) return;
  check_count(recomputes_[id]);
  if (options_.determinism_check == DeterminismCheck::metadata) check_metadata(id);
}

// Fills the holders by position and keeps the tensor for a backward inside the body (rule K8).
std::shared_ptr<void> CheckpointFrame::pack_recomputed(RecomputeId id, const Tensor& tensor) {
  auto kept = std::make_shared<Tensor>(tensor.requires_grad() ? tensor.detach() : tensor);
  const std::size_t position = recomputes_[id].saved++;
  if (position >= saved_.size()) {
    if (options_.stops_early || is_forward_complete_)
      throw CheckpointError(
          "torch.utils.checkpoint: trying to save more tensors during recomputation than during "
          "the original forward pass.");
    may_save_more_ = true;
    return kept;
  }
  // A backward inside the body may have released the node that owned it.
  if (const auto holder = saved_[position].holder.lock()) holder->recomputed[id] = *kept;
  if (options_.stops_early && position + 1 == saved_.size()) throw StopRecomputation{};
  return kept;
}

void CheckpointFrame::check_count(const Recompute& recompute) const {
  if (recompute.saved == saved_.size()) return;
  throw CheckpointError(
      fmt::format("torch.utils.checkpoint: A different number of tensors was saved during the "
                  "original forward and recomputation.\n"
                  "Number of tensors saved during forward: {}\n"
                  "Number of tensors saved during recomputation: {}.",
                  saved_.size(), recompute.saved));
}

void CheckpointFrame::check_metadata(RecomputeId id) const {
  std::string differences;
  for (std::size_t i = 0; i < saved_.size(); ++i) {
    const auto holder = saved_[i].holder.lock();
    if (!holder) continue;
    const auto at = holder->recomputed.find(id);
    ZP_CHECK(at != holder->recomputed.end() && at->second.is_defined(),
             "every living holder was filled");
    const Metadata recomputed(at->second);
    if (recomputed == saved_[i].metadata) continue;
    differences +=
        fmt::format("tensor at position {}:\nsaved metadata: {}\nrecomputed metadata: {}\n", i,
                    saved_[i].metadata.text(), recomputed.text());
  }
  if (differences.empty()) return;
  throw CheckpointError(
      "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
      "than during the forward pass.\n" +
      differences);
}

}  // namespace zeroproof
