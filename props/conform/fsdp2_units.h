#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

// FSDP2's hooks in a world of one (docs/spec/autograd.md 19): what fully_shard puts around
// modules, without the sharding. Pre-backward is a tensor hook on the outputs, post-backward an
// identity Function on the inputs, and the final callback that the first pre-backward queues
// repairs the post-backwards that did not come, or leaves them to finalize_backward(). It must
// outlive every backward of its modules.
class Fsdp2Units {
 public:
  // Sees "cb_queued", "pre_bwd:NAME", "post_bwd:NAME", "final+" and "final-".
  using Report = std::function<void(const std::string& what)>;

  Fsdp2Units(Autograd& autograd, Report report);
  ~Fsdp2Units();
  Fsdp2Units(const Fsdp2Units&) = delete;
  Fsdp2Units& operator=(const Fsdp2Units&) = delete;

  // Makes `module` a unit; the final callback goes through them in the order of this. The module
  // must stay where it is.
  void add(nn::Module& module, std::string name);

  // set_manual_backward_finalization: of the backwards that begin from now on.
  void set_manual_finalization(bool is_manual) { is_manual_ = is_manual; }
  // After such a backward: the post-backwards that did not come, last unit first.
  void finalize_backward();

  // Whether a final callback is due: a backward that failed leaves it so.
  bool has_queued() const { return has_queued_; }
  // What newer versions call after a failed backward.
  void reset();

 private:
  enum class State { idle, forward, pre_backward, post_backward };
  struct Unit {
    std::string name;
    State state = State::idle;   // of its parameters
    State module = State::idle;  // of the module
    bool is_pending = false;     // its post-backward is left to finalize_backward()
  };

  TensorList pre_forward(Unit& unit, const TensorList& inputs);
  void post_forward(Unit& unit, const TensorList& outputs);
  void pre_backward(Unit& unit);
  void post_backward(Unit& unit);
  void finish();

  Autograd& autograd_;
  Report report_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<HookHandle> handles_;
  bool has_queued_ = false;
  bool is_manual_ = false;
};

}  // namespace zeroproof
