#pragma once

#include <cstdint>

#include "zeroproof/internal/props/method.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

class ParameterBook;

// What a raw event means in the alphabet of docs/spec/zero.md 0.4.
enum class FactKind : std::uint8_t {
  other,  // look at Fact::event: buckets, collectives, parameters, exceptions
  forward_begin,
  forward_end,
  backward_begin,  // engine.backward
  backward_end,
  task_begin,
  task_end,
  output_hook,
  prologue_begin,
  prologue_end,
  work_begin,  // a parameter's gradient hook
  work_end,
  count,  // one expected-set query
  callback_queued,
  callback_begin,
  callback_end,
  post_hook_begin,
  post_hook_end,
  epilogue_begin,
  epilogue_end,
  step_begin,
  step_end,
  model_step,
  zero_grad,
  grad_epilogue_end,  // stage 1/2 or 3: the gradient the optimizer will read is ready
  module_push,
  module_pop,
  manager_call,
  manager_return,
  abandoned,         // the engine reported that it drops an unfinished backward
  inside_transform,  // an engine event under a functorch transform
  backward_done,     // everything that belongs to one task and engine has happened: see tally
};

// All that one engine did in one graph task and the tasks nested in it.
struct BackwardTally {
  EngineId engine;
  std::int64_t task = -1;  // serial, see Fact::task
  GraphTaskId graph_task;
  bool is_root = true;
  bool is_user_backward = false;        // in UB(e): an output hook of e ran in this very task
  bool is_under_user_backward = false;  // or in one it is nested in
  bool is_in_callback_mode = false;     // a callback of e was queued here or further out
  bool has_raised = false;
  std::int32_t output_hooks = 0;
  std::int32_t prologues = 0;
  std::int32_t epilogues = 0;  // attributed to this task
  std::int32_t works = 0;      // with nested tasks
  std::int32_t late_works = 0;
  std::int32_t counts = 0;
  std::int32_t phases = 0;  // maximal runs of works inside one task
  std::int32_t callbacks_queued = 0;
  std::int32_t own_works = 0;  // without nested tasks
  std::int32_t expected_max = 0;
  std::int64_t last_work_task = -1;
  NameId late_param;  // the first work after an epilogue
  std::uint64_t late_lc = 0;
  std::uint64_t end_lc = 0;
};

// One event, read in the context of the events before it. Pointers are valid during the call.
struct Fact {
  FactKind kind = FactKind::other;
  Method method = Method::other;
  const HookEvent* event = nullptr;  // never null
  EngineId engine;                   // none when it is not known
  std::int64_t task = -1;            // serial of the current (task_*: own) open task
  std::int64_t user_task = -1;       // innermost task of the engine's UB that this belongs to
  bool is_in_forward = false;        // of the engine, on any thread of the rank
  bool is_in_backward = false;       // engine.backward of the engine
  bool is_quiet = false;             // no task and no engine.backward of any engine
  bool is_automatic = false;         // epilogue_*: not by engine.backward itself
  bool is_bypassing = false;         // its parameter is also reached past the outputs
  bool has_raised = false;           // the bracket that ends here raised
  std::int32_t engine_count = 0;     // engines seen so far
  std::int32_t live_callbacks = 0;   // queued by the engine, not begun, task open
  std::int32_t forwards = 0;         // engine.forward calls so far, up to kForwardsMax
  std::int64_t micro_step = -1;
  std::uint64_t begin_lc = 0;                 // *_end: of the event that opened the bracket
  std::int64_t value = 0;                     // count: the answer
  const BackwardState* manager = nullptr;     // last known, null when the engine has none
  const BackwardTally* tally = nullptr;       // backward_done
  const ParameterBook* parameters = nullptr;  // before the event; never null
};

// Counting further would make states of an endless run all different.
inline constexpr std::int32_t kForwardsMax = 64;

}  // namespace zeroproof
