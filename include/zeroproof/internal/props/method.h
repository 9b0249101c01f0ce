#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

// The methods of engine.* and bhs.* brackets that the properties know. Numbers in brackets are
// sections of docs/spec/zero.md.
enum class Method : std::uint8_t {
  other,
  forward,            // engine.forward
  backward,           // engine.backward
  prologue,           // engine.backward_prologue
  output_hook,        // engine.backward_prologue_per_tensor
  grad_hook,          // a parameter's gradient hook
  post_hook,          // engine.backward_post_hook
  epilogue,           // engine.backward_epilogue
  step,               // engine.step
  model_step,         // engine.take_model_step: this step is a boundary
  zero_grad,          // of the engine or of its optimizer
  grad_epilogue_12,   // stage 1/2: the averaged gradient is rebuilt (2.16)
  grad_epilogue_3,    // stage 3: the partition buffer becomes the gradient (2.18)
  finalize_window,    // unmanaged accumulation (2.14)
  process_gradients,  // stage 1/2: the work of a gradient hook
  pre_forward,        // stage 3: the module is pushed on the forward stack (3.2)
  post_forward,       // stage 3: and popped
  reset,              // the manager's methods (1.3) from here on
  enter,
  exit,
  queue,
  refresh,
  reenter,
  update,
  run_post,
  pre_backward,   // stage 3: a module is fetched for its backward (3.2)
  post_backward,  // stage 3: and released after it
  reset_trace,    // stage 3: the root's forward begins a pass of the fetch trace (3.5)
  invalidate_trace,
  release_leftovers,    // stage 3: what no backward hook released (3.4)
  release_all,          // stage 3: before the step
  partition_grads,      // stage 3: into the partition buffer; index: its micro counter (2.18)
  gathered_parameters,  // around the body of a user gather context (3.9)
  coalesce,             // around the body and the flush of a coalesced block (2.13)
  fallback_gather,      // section 5 from here on: parameters became the fallback's
  fallback_claim,       // a forward returned outputs; index: its graph
  fallback_start,       // a backward reached the graph
  fallback_drop,        // its claims are gone
  fallback_release,     // parameters are given back
  fallback_abandon,     // all graphs are given up on the user's wish
  fallback_guard,       // a compiler's guard is evaluated
};

// The method an upstream name stands for.
Method method_of(std::string_view name);

// method_of, remembered per interned name.
class MethodTable {
 public:
  // `names` must outlive the table.
  explicit MethodTable(const NameTable& names) : names_(&names) {}

  Method of(NameId name);

 private:
  const NameTable* names_;
  std::vector<std::int16_t> methods_;  // -1: not asked for yet
};

}  // namespace zeroproof
