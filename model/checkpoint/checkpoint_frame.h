#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/checkpoint/forward_state.h"
#include "model/saved_tensor.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

class FunctionContext;

// One call of a non-reentrant checkpoint (rules K4 to K11). What its graph saves are holders that
// a recompute fills; the graph owns them and they own the frame. The frame keeps the region's
// inputs, as saved tensors of whatever surrounds the region: in older releases of PyTorch those of
// a node, now its own.
class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  CheckpointFrame(Autograd& autograd, CheckpointBody body, const TensorList& inputs,
                  const CheckpointOptions& options);

  // False when grad mode was off.
  bool is_recording() const { return is_recording_; }
  const CheckpointBody& body() const { return body_; }
  const CheckpointContexts& contexts() const { return contexts_; }

  // What the body's forward runs under.
  SavedTensorHooks forward_hooks();
  void complete_forward() { is_forward_complete_ = true; }

 private:
  // A graph task, or one unpacking outside of any: numbers below none.
  using RecomputeId = GraphTaskId;

  // Stands for one saved tensor; undefined once it was unpacked.
  struct Holder {
    std::map<RecomputeId, Tensor> recomputed;
  };

  struct Metadata {
    Shape sizes;
    DType dtype = DType::float64;
    Device device;
    explicit Metadata(const Tensor& tensor);
    std::string text() const;
    friend bool operator==(const Metadata&, const Metadata&) = default;
  };

  struct Saved {
    std::weak_ptr<Holder> holder;
    Metadata metadata;
  };

  struct Recompute {
    std::size_t saved = 0;
    bool is_done = false;
  };

  void save_inputs(const TensorList& inputs);
  TensorList saved_inputs() const;
  std::shared_ptr<void> pack(const Tensor& tensor);
  Tensor unpack(Holder& holder);
  RecomputeId current_recompute();
  void recompute(RecomputeId id);
  std::shared_ptr<void> pack_recomputed(RecomputeId id, const Tensor& tensor);
  void check_count(const Recompute& recompute) const;
  void check_metadata(RecomputeId id) const;

  Autograd& autograd_;
  CheckpointBody body_;
  CheckpointOptions options_;
  bool is_recording_;
  ForwardState state_;
  CheckpointContexts contexts_;
  std::vector<SavedTensor> inputs_;
  Tensor input_keeper_;                       // in older releases: its grad_fn keeps the inputs
  FunctionContext* input_context_ = nullptr;  // of that grad_fn
  std::vector<Saved> saved_;
  std::map<RecomputeId, Recompute> recomputes_;
  std::int64_t next_outside_ = RecomputeId::none().value - 1;
  bool is_forward_complete_ = false;
  bool may_save_more_ = false;  // a backward inside the body recomputed beyond what was saved
};

}  // namespace zeroproof
