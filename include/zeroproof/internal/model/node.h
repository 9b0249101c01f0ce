#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/graph_snapshot.h"
#include "zeroproof/model/device.h"
#include "zeroproof/model/hooks.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;
class Node;

// Leads to an input slot of the next node; invalid (null) where no gradient is needed (rule N1).
struct Edge {
  std::shared_ptr<Node> node;
  std::uint32_t slot = 0;
  bool is_valid() const { return node != nullptr; }
};

// What a gradient that arrives at a slot has to look like; taken when the node is made (E5, A6).
struct InputMetadata {
  Shape sizes;
  DType dtype = DType::float64;  // of the output
  Device device = {};
  std::optional<DType> grad_dtype = dtype;  // none: whatever it comes in

  bool takes(DType grad) const { return !grad_dtype || grad == *grad_dtype; }
};

// One function of the backward graph. Made by operations, owned by the tensors and nodes after
// it, freed without recursion. Immovable. It refers to the Autograd that made it, which has to
// outlive every use of the node, but not its destruction.
class Node : public std::enable_shared_from_this<Node> {
 public:
  using PreHook = std::function<TensorList(const TensorList& grad_outputs)>;
  using PostHook =
      std::function<TensorList(const TensorList& grad_inputs, const TensorList& grad_outputs)>;

  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  bool belongs_to(const Autograd& autograd) const { return &autograd_ == &autograd; }

  // As PyTorch names it: "AddmmBackward0". Static.
  virtual std::string_view name() const = 0;

  // From gradients of the outputs (one a slot, undefined where none came) to gradients of the
  // inputs (one an edge).
  virtual TensorList apply(TensorList grads) = 0;
  // Drops saved tensors (rule D1); structure and hooks stay.
  virtual void release_saved_tensors() {}

  // Steps 3 and 4 of an evaluation: tensor hooks of every slot, then retain_grad.
  virtual void run_tensor_hooks(TensorList& grads) const {
    if (hooks_) run_own_tensor_hooks(grads);
  }

  std::uint64_t sequence_nr() const { return sequence_nr_; }
  std::uint64_t topological_nr() const { return topological_nr_; }  // rule N4
  const std::vector<Edge>& next_edges() const { return next_edges_; }
  void add_next_edge(Edge edge);

  const std::vector<InputMetadata>& input_metadata() const { return input_metadata_; }
  // Takes it from one of the node's outputs; returns the slot.
  std::uint32_t add_input_metadata(const Tensor& output);
  // Gradients that arrive at the slot are cast to it; none: they stay what they are.
  void set_grad_dtype(std::uint32_t slot, std::optional<DType> dtype) {
    input_metadata_[slot].grad_dtype = dtype;
  }
  // Of its first output on an accelerator, and the stream that was current there then (Q3, Q7).
  Device device() const { return device_; }
  StreamIndex stream() const { return stream_; }

  // An empty list from a hook keeps the gradients (rules H4, H7).
  HookHandle register_prehook(PreHook hook) { return hooks().pre.add(std::move(hook)); }
  HookHandle register_hook(PostHook hook) { return hooks().post.add(std::move(hook)); }
  bool has_pre_hooks() const { return hooks_ && !hooks_->pre.is_empty(); }
  bool has_post_hooks() const { return hooks_ && !hooks_->post.is_empty(); }
  HookList<PreHook>::Snapshot pre_hooks() const { return hooks_->pre.snapshot(); }
  HookList<PostHook>::Snapshot post_hooks() const { return hooks_->post.snapshot(); }
  HookHandle add_tensor_hook(std::uint32_t slot, Tensor::Hook hook);
  void retain_grad_of(const Tensor& output);

  // Where the graph task `task` keeps its counters of this node; see GraphTask.
  struct TaskSlot {
    GraphTaskId task;
    std::uint32_t index = 0;
  };
  TaskSlot task_slot;

 protected:
  Node(Autograd& autograd, std::uint64_t sequence_nr)
      : autograd_(autograd), sequence_nr_(sequence_nr) {}
  Autograd& autograd() const { return autograd_; }

 private:
  struct SlotHooks {
    std::uint32_t slot;
    HookList<Tensor::Hook> hooks;
  };
  struct RetainedGrad {
    std::uint32_t slot;
    std::weak_ptr<TensorImpl> tensor;
  };
  // Most nodes have no hooks.
  struct Hooks {
    HookList<PreHook> pre;
    HookList<PostHook> post;
    std::vector<SlotHooks> tensor;
    std::vector<RetainedGrad> retained;
  };

  Hooks& hooks();
  void run_own_tensor_hooks(TensorList& grads) const;

  Autograd& autograd_;
  std::uint64_t sequence_nr_;
  std::uint64_t topological_nr_ = 0;
  std::vector<Edge> next_edges_;
  std::vector<InputMetadata> input_metadata_;
  Device device_;
  StreamIndex stream_ = 0;
  std::unique_ptr<Hooks> hooks_;
};

// What a hook returned in place of a gradient: of the same size and dtype, or undefined for
// undefined; else AutogradError.
void check_replacement(const Tensor& grad, const Tensor& replacement);
void check_replacements(const TensorList& grads, const TensorList& replacements);

// Runs the hooks of one tensor; each sees what the one before returned.
void run_hooks(const HookList<Tensor::Hook>& hooks, Tensor& grad);

}  // namespace zeroproof
