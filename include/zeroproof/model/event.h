#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "zeroproof/model/backward_state.h"
#include "zeroproof/model/event_kind.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

// One fact about a run: the vocabulary every layer speaks. The trace reader fills it from a
// hooktrace line, the simulator emits it, the properties read it. Names are interned in the
// NameTable that belongs to the source of the events.
//
// `name` is the word the kind is about: method (engine.*, bhs.*), label (cb, ckpt, fn, hooks,
// mark), module (module.*, zmod.*), op (coll.*), status (zparam.status), kind (ft.*), device
// (autocast.*), dtype (bucket.flush), type (exc). Fields that a kind does not have keep their
// defaults.
struct HookEvent {
  EventKind kind = EventKind::unknown;
  std::int32_t rank = 0;
  std::int32_t thread = 0;
  std::int32_t depth = 0;       // open backward/grad calls
  std::uint64_t lc = 0;         // logical clock of the rank: the order
  std::int64_t time_ns = 0;     // monotonic; for viewing only
  GraphTaskId graph_task;       // current on the thread; gt.begin and gt.end: the task's own
  std::int32_t transforms = 0;  // height of the functorch interpreter stack
  NameId name;
  NameId param;
  NameId group;      // collectives
  NameId exception;  // type that passed through the bracket this event closes
  NameId message;    // exc
  std::vector<NameId> params;
  EngineId engine;
  std::int64_t call = -1;         // gt.*, node.exec: number of the backward or grad call
  std::int64_t parent_call = -1;  // gt.begin of a nested task
  std::int64_t micro_step = -1;   // engine.call
  std::int64_t global_step = -1;
  std::int64_t node = -1;   // node.exec: node id in the snapshot of the same call
  std::int64_t index = -1;  // coll.*: cseq; bucket.ready: index; ft.*: level; ckpt.*: n
  std::int64_t numel = -1;  // zparam.gather_end, zparam.partition: of all gathered parameters
  std::int64_t bytes = -1;
  std::int64_t optimizer = -1;           // opt.step: id of its optimizer record
  std::int64_t grads = -1;               // opt.step: parameters that have a gradient
  std::int32_t peer = -1;                // send, recv: the other rank; -1: any, or not recorded
  std::int32_t root = -1;                // broadcast, reduce, gather, scatter: rank of the root
  bool is_forward = false;               // zmod.*, zparam.gather_*
  bool is_async = false;                 // coll.*
  bool is_recompute = false;             // module.fwd_*
  bool is_early_stop = false;            // ckpt.recompute_end
  bool is_grad_none = false;             // hooks that got no gradient
  bool is_persistent = false;            // zparam.status
  bool is_enabled = false;               // autocast.enter
  bool is_closure = false;               // opt.step: written after its closure ran
  bool is_uncaught = false;              // exc: the process ends by it
  bool keeps_graph = false;              // gt.begin: retain_graph
  std::int32_t active_modules = 0;       // zparam.status: modules that hold the parameter
  std::optional<BackwardState> manager;  // bhs.call: before; bhs.return: after
  std::optional<std::int64_t> argument;  // bhs.call: first argument
  std::optional<bool> returned;          // bhs.return: boolean result

  bool is_exceptional() const { return !exception.is_none(); }
  friend bool operator==(const HookEvent&, const HookEvent&) = default;
};

// Receives events in order of their logical clock. The reference is valid during the call only.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const HookEvent& event) = 0;
};

class NullSink final : public EventSink {
 public:
  void on_event(const HookEvent&) override {}
};

}  // namespace zeroproof
