#pragma once

#include "props/train/pass.h"

// The windows of the scenarios: programs that know neither engines nor baseline.
namespace zeroproof::train {

// Forward, backward, step.
void plain_window(Pass& pass);
// As many micro-batches as the scenario has accumulation steps; without managed accumulation one
// step at their end.
void accumulating_window(Pass& pass);
void non_scalar_window(Pass& pass);
void separate_loss_window(Pass& pass);
void container_window(Pass& pass);
void bypass_window(Pass& pass);
void bypass_gas2_window(Pass& pass);
void exception_window(Pass& pass);
void scale_argument_window(Pass& pass);
void forgotten_scale_window(Pass& pass);
// Several engines.
void two_engines_window(Pass& pass);
void chained_engines_window(Pass& pass);
void shared_loss_window(Pass& pass);
// Several backwards a step.
void two_losses_window(Pass& pass);
void two_forwards_window(Pass& pass);
void one_pass_window(Pass& pass);
void two_passes_window(Pass& pass);
void four_passes_window(Pass& pass);
void unmanaged_window(Pass& pass);
void coalesced_window(Pass& pass);
void alternating_window(Pass& pass);
void unmanaged_skipping_window(Pass& pass);
void cleared_window(Pass& pass);
void tiled_after_abort_window(Pass& pass);
// A function transform through the engine, between two ordinary steps' worth of training.
void func_grad_window(Pass& pass);
void func_grad_and_value_window(Pass& pass);
void func_jacrev_window(Pass& pass);
void func_vmap_window(Pass& pass);
void func_vmap_grad_window(Pass& pass);

}  // namespace zeroproof::train
