#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cpu_ops.h"
#include "model/graph_walk.h"
#include "props/conform/recording.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/event.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {

// What a program's own hook throws: Python's ValueError.
class ValueError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The recorded trace lacks a tensor that the program starts from.
class MissingTensor : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct LeafOptions {
  bool requires_grad = true;
  bool is_observed = true;       // with a post-accumulate hook that makes an event
  bool has_tensor_hook = false;  // with a tensor hook that makes one too
};

struct LinearOptions {
  bool has_bias = true;
  LeafOptions weight = {};
  LeafOptions bias = {};
};

// What a conformance program runs on: parameters and inputs with the recorded numbers, hooks that
// make events, and the recording of it all. One run each. Not thread-safe.
class ProgramRun final : private AutogradObserver {
 public:
  // `recorded` has the numbers to start from and must outlive the run. What was recorded in a
  // dtype narrower than `dtype` keeps it; tensors live where the recorded ones did.
  ProgramRun(const Recording& recorded, DType dtype);

  Autograd& autograd() { return autograd_; }
  Device device() const { return device_; }
  std::uint64_t seed() const {
    return static_cast<std::uint64_t>(recorded_.header.seed.value_or(0));
  }

  // The next input; without a name, "in0", "in1", … Throws MissingTensor.
  Tensor input(std::string_view name = {});
  Tensor leaf_input(std::string_view name, const LeafOptions& options = {});
  // The parameters name.weight and name.bias.
  nn::Linear linear(const std::string& name, const LinearOptions& options = {});
  const std::vector<std::pair<std::string, Tensor>>& leaves() const { return leaves_; }
  // With a post-accumulate hook that makes an event.
  void observe(const std::string& name, const Tensor& leaf);
  // A checkpoint whose body makes events: of a forward the first time that a body of this label
  // runs, of a recompute after that.
  Tensor ckpt(const std::string& label, CheckpointKind kind,
              std::function<Tensor(const Tensor&)> body, const Tensor& input,
              const CheckpointOptions& options = {});

  void mark(std::string_view label);
  void mark(std::string_view label, bool fact);  // "label:True"
  void emit(EventKind kind, std::string_view name);
  void bucket_ready(std::size_t index);
  HookHandle hook(const Tensor& tensor, const std::string& label, Tensor::Hook then = {});
  void prehook(const std::shared_ptr<Node>& node, const std::string& label);
  void posthook(const std::shared_ptr<Node>& node, const std::string& label);
  void queue(const std::string& label, std::function<void()> then = {});
  // An exception becomes an event.
  void guarded(const std::function<void()>& body);

  void dump(std::string_view role, std::string_view name, const Tensor& tensor);

  // Dumps the gradients of all leaves and gives the recording away.
  Recording finish();

 private:
  struct Call {
    std::int64_t number;
    GraphWalk walk;
  };

  void on_backward_begin(const BackwardCall& call) override;
  void on_node(const Node& node) override;
  void on_backward_end(std::exception_ptr error) override;
  void on_transform_push(const TransformFrame& frame) override;
  void on_transform_pop(const TransformFrame& frame) override;

  Tensor recorded_tensor(const std::string& role, const std::string& name) const;
  Tensor name_leaf(const std::string& name, Tensor leaf, const LeafOptions& options);
  TensorList run_body(const std::string& label, const std::function<Tensor(const Tensor&)>& body,
                      const Tensor& input);
  HookEvent event(EventKind kind, std::string_view name);
  void send(HookEvent event);

  const Recording& recorded_;
  DType dtype_;
  Device device_;
  CpuOps ops_;
  NameTable names_;
  Recording recording_;
  RecordingSink sink_{recording_, names_};
  std::uint64_t clock_ = 0;
  std::int64_t next_call_ = 0;
  int next_input_ = 0;
  std::vector<Call> calls_;
  std::vector<std::pair<std::string, Tensor>> leaves_;
  std::map<std::string, std::int64_t> body_runs_;  // of checkpoints, by their label
  Autograd autograd_{ops_, this};
};

// Python's name of an exception's type: "RuntimeError".
std::string exception_type(const std::exception_ptr& error);

}  // namespace zeroproof
