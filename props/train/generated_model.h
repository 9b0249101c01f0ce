#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "props/train/case_spec.h"
#include "props/train/models.h"
#include "props/train/user_backward.h"
#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof::train {

// Of a wrap that is a checkpoint.
inline CheckpointKind kind_of(Wrap wrap) {
  return wrap == Wrap::reentrant ? CheckpointKind::reentrant : CheckpointKind::non_reentrant;
}

// The model of a CaseSpec, exact data: layers that are called one after the other, in checkpoints,
// by tiles, twice; one loss or two. Layer i is "l<i>".
class GeneratedModel final : public nn::Module {
 public:
  // `options.spec` is set. `is_truth`: tiles as ordinary operations.
  GeneratedModel(const ModelOptions& options, bool is_truth);

  // What the next forward does otherwise than the others.
  struct Next {
    int skips = 0;                 // k: call k - 1 does not run
    int aborts = 0;                // k: the backward throws Injected behind call k - 1
    bool fails_at_weight = false;  // where the weight of its layer gets its gradient
    int overflow = 0;              // k: what the layer of call k - 1 gets
    double spike = 1.0;            // is times that on this rank
    int expert = 0;                // which of two runs
    int throws = 0;                // k: layer k - 1 throws Injected inside its forward
    int interrupts = 0;            // k: the backward calls `on_interrupt` behind call k - 1
    std::function<void()> on_interrupt = {};
    int detours = 0;  // k: the forward, not one again, calls `on_detour` behind call k - 1
    std::function<void()> on_detour = {};
    std::function<void()> on_end = {};     // at the end of the forward
    bool is_unread = false;                // no weight past its layer
    std::vector<std::size_t> asides = {};  // these modules without parameters, and nothing else
  };
  void arm(const Next& next);
  // Its parameters need a gradient or not, from now on, but for what is always frozen.
  void set_layer_trained(int layer, bool is_trained);
  // Where there are some, their module's name.
  static constexpr const char* kExperts = CaseSpec::kExperts;
  // Layer 0 by itself, past every hook of the root: adds to a loss of its own.
  Tensor bypass(Autograd& ag, const TensorList& inputs) const;
  // The same without a bias and past every hook of layer 0, too: its weight has to be whole.
  Tensor bypass_of_weight(Autograd& ag, const TensorList& inputs) const;
  Tensor bypassed_weight() const { return weight_of(0); }
  // The gradients that the user saw since this was asked last, one behind the other; in what order
  // they came is nobody's promise.
  std::vector<double> take_seen();

  OutputContainer output_container() const override;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  struct Call {  // one, as this forward makes it
    std::size_t number = 0;
    double factor = 1.0;
    bool is_raising = false;
    bool is_interrupted = false;
    bool has_detour = false;
    bool overflows = false;
    double spike = 1.0;
  };

  void add_layers(nn::InitStream& init);
  void freeze(std::size_t layer);
  Tensor weight_of(std::size_t layer) const;
  TensorList run_asides(Autograd& ag, const TensorList& inputs) const;
  TensorList run_expert(Autograd& ag, const TensorList& inputs) const;
  TensorList with_own(Autograd& ag, const TensorList& inputs) const;
  TensorList with_read(Autograd& ag, const TensorList& inputs) const;
  TensorList with_late_read(Autograd& ag, const TensorList& inputs) const;
  TensorList bypassing(Autograd& ag, const TensorList& inputs) const;
  std::vector<Call> calls_of_next() const;
  TensorList call_layer(Autograd& ag, std::size_t layer, const TensorList& inputs) const;
  TensorList run(Autograd& ag, const Call& call, const TensorList& inputs) const;
  TensorList run_all(Autograd& ag, const std::vector<Call>& calls, const TensorList& inputs) const;
  TensorList run_again(Autograd& ag, const std::vector<Call>& calls,
                       const TensorList& inputs) const;
  TensorList run_wrapped(Autograd& ag, Wrap wrap, const std::vector<Call>& calls,
                         const TensorList& inputs) const;
  Tensor run_tiles(Autograd& ag, const Call& call, const TensorList& inputs) const;
  TensorList differentiate_tiles(Autograd& ag, const Call& call, const TensorList& inputs) const;
  Tensor tile_loss(Autograd& ag, const Call& call, const TensorList& tile) const;
  void mark_ready(const Call& call, bool is_ready) const;
  TensorList with_losses(Autograd& ag, const std::vector<Call>& calls, const TensorList& h) const;

  const CaseSpec& spec_;
  ModelOptions options_;
  bool is_truth_;
  Next next_;
  HookHandle failing_hook_;       // of a weight, until the next forward
  mutable Tensor closed_factor_;  // for the layer that is called next, where it is a closed one
  mutable SeenGradients seen_;
  std::vector<std::shared_ptr<nn::Module>> layers_;
  Tensor* own_ = nullptr;                // the root's weight; null: none
  std::shared_ptr<nn::Module> experts_;  // null: none
  std::shared_ptr<nn::Module> reader_;   // null: none; uses `layers_`
  std::vector<std::shared_ptr<nn::Module>> asides_;
};

// Of what stage 3 never partitions in the models of a case, at most.
std::int64_t persistent_bytes(const CaseSpec& spec);

}  // namespace zeroproof::train
