#pragma once

#include "engine/events.h"
#include "engine/precision/loss_scaler.h"
#include "engine/upstream_rules.h"
#include "engine/zero/communicator.h"
#include "engine/zero/gradient_averaging.h"
#include "engine/zero/zero_parameter.h"
#include "zeroproof/engine/fallback_rule.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

class HookPolicy;
class BackwardTracker;

// What the parts of one engine share; the engine owns it and keeps the flags.
struct ZeroContext {
  Autograd& autograd;
  nn::Module& module;
  const ZeroConfig& config;
  Runtime& runtime;
  UpstreamRules upstream;
  const BackwardTracker& tracker;  // the engine feeds it
  Events events;
  ZeroParameters parameters;
  LossScaler loss_scaler;
  Communicator data;    // collectives with events, over the data-parallel group
  Communicator tensor;  // and the tensor-parallel one

  bool skips_frames = false;  // all frames of a compiled module run eagerly (docs/spec/zero.md 5)
  FallbackRule fallback_rule = FallbackRule::per_graph;
  bool gathers_ahead = false;  // EngineOptions

  HookPolicy* policy = nullptr;  // the engine's; none where a part stands alone

  bool is_boundary = true;     // of the optimizer: is this micro-batch the window's last?
  bool is_coalescing = false;  // inside coalesce_grad_reduction
  bool is_no_sync = false;     // inside no_sync

  Tensor captured_squares = {};  // of a captured step: its norm's, where replays leave them

  // An iteration is being captured: the host cannot read its values.
  bool is_captured() const { return runtime.graphs() && runtime.graphs()->is_capturing(); }

  Kernels& kernels() const { return runtime.kernels(); }
  Stream& compute() const { return runtime.stream(StreamRole::compute); }
  // Where gradients are reduced: beside the computation with overlap_comm.
  Stream& reduction() const {
    return config.has_overlap_comm() ? runtime.stream(StreamRole::reduction) : compute();
  }

  // Every .grad is None again, those of frozen parameters too.
  void clear_grads() const;

  // Gives the policy what upstream's optimizers write to `epilogue_ran_this_backward`
  // (docs/spec/zero.md 2.18).
  void set_epilogue_ran(bool ran) const;

  // What a sum over the data group is divided by: ranks / sequence-parallel degree; 1 for "sum".
  double averaging_divisor() const;
  // Of an all-reduce: before the sum, or around it by /gradient_predivide_factor.
  GradientAveraging averaging(bool is_before) const;
};

}  // namespace zeroproof
