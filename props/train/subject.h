#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "zeroproof/engine/hooks/hook_policy.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {
class Autograd;
}

namespace zeroproof::train {

// What holds while ranks run on a thread.
class RankScope {
 public:
  RankScope() = default;
  RankScope(const RankScope&) = delete;
  RankScope& operator=(const RankScope&) = delete;
  virtual ~RankScope() = default;
};

// How the engines of a cell differ from plain ones, on top of the cell's policy and quirks. Null
// members have no effect. Plain data; the functions are called once an engine, a rank or a thread.
struct Subject {
  // Called on every thread that runs ranks of the cell, before their engines are made.
  std::function<std::unique_ptr<RankScope>()> enter = {};
  std::unique_ptr<HookPolicy> (*decorate_policy)(std::unique_ptr<HookPolicy> policy) = nullptr;
  // What the engine gets in place of the rank's runtime, which outlives it.
  std::unique_ptr<Runtime> (*decorate_runtime)(Runtime& runtime) = nullptr;
  // What a checkpoint does when it runs `body` again; and what the loss of each tile is multiplied
  // by where a tile differentiates it. Both are parts of a framework, though not of an engine.
  TensorList (*recompute)(Autograd& autograd, const std::function<TensorList()>& body) = nullptr;
  double tile_weight = 1.0;
};

// Enters a subject on the thread that makes it, where simulated ranks are fibers, and on the
// threads of ranks that have their own. A null `subject` is not entered.
class RankScopes {
 public:
  explicit RankScopes(const Subject* subject)
      : subject_(subject), caller_(std::this_thread::get_id()), own_(enter()) {}

  // To be kept while a rank's program runs; null where the thread has entered already.
  std::unique_ptr<RankScope> of_rank() const {
    return std::this_thread::get_id() == caller_ ? nullptr : enter();
  }

 private:
  std::unique_ptr<RankScope> enter() const {
    return subject_ && subject_->enter ? subject_->enter() : nullptr;
  }

  const Subject* subject_;
  std::thread::id caller_;
  std::unique_ptr<RankScope> own_;
};

}  // namespace zeroproof::train
