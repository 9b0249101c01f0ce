#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_core.h"
#include "engine/journal.h"
#include "engine/zero/stage3/stage3.h"
#include "model/cpu_ops.h"
#include "tests/peer/support/check.h"
#include "tests/peer/support/net.h"
#include "tests/peer/support/row.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof::peer {

// What happened on one rank, in order.
class Recording final : public EventSink {
 public:
  void on_event(const HookEvent& event) override { events.push_back(event); }
  // Events of one kind, about `name` unless that is empty, from `begin` on.
  std::size_t count(EventKind kind, const std::string& name = {}, std::size_t begin = 0) const;
  // The parameters of the events of one kind, an entry an event, from `begin` on.
  std::vector<std::vector<std::string>> parameters(EventKind kind, std::size_t begin = 0) const;
  // Collectives that carry gradients or parameters: "all_reduce", "reduce", "all_gather", ...
  std::size_t count_collectives(const std::string& op, std::size_t begin = 0) const;

  std::vector<HookEvent> events;
  NameTable names;
};

// An engine with its model, and what it is made of.
class Engined {
 public:
  Engined(Autograd& ag, ModulePtr module, const ZeroConfig& config, Runtime& runtime,
          const EngineOptions& options);

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  Engine::Core& core() { return *core_; }
  Net& net() { return dynamic_cast<Net&>(*module_); }
  nn::Module& module() { return *module_; }
  Zero3Optimizer& zero3() { return dynamic_cast<Zero3Optimizer&>(core_->optimizer()); }
  PartitionedParameter& partitioned(const std::string& name);

 private:
  ModulePtr module_;
  Engine::Core* core_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

// One rank of a row, on its own thread.
class Rank {
 public:
  Rank(Runtime& runtime_in, Recording& recording_in, const Twin& twin_in)
      : runtime(runtime_in), recording(recording_in), twin(twin_in) {}

  // Throws Failed with the text of a configuration that is refused.
  Engined engine(const NetMaker& make, const ZeroConfig& config);
  Engined engine(const NetMaker& make, const ZeroConfig& config, EngineOptions options);
  int rank() const { return runtime.rank(); }
  int ranks() const { return runtime.world_size(); }

  Runtime& runtime;
  Recording& recording;
  const Twin& twin;
  CpuOps ops;
  Autograd ag{ops};
};

struct WorldOptions {
  int ranks = 2;
  std::vector<AccessObserver*> accesses = {};  // empty, or one a rank
  Device device = {};                          // where buffers count as living
};

// Runs `program` on every rank; rethrows what the lowest rank threw.
void on_ranks(const WorldOptions& options, const Twin& twin,
              const std::function<void(Rank& rank)>& program);
inline void on_ranks(int ranks, const Twin& twin, const std::function<void(Rank&)>& program) {
  on_ranks(WorldOptions{.ranks = ranks}, twin, program);
}

// Upstream's common settings: Adam with 1e-3, no clipping, stage-3 persistence threshold 0; fp16
// with a dynamic scale that begins at 2^8.
ZeroConfig base_config(int stage, DType dtype = DType::float32);

// The EngineError or other exception that `body` has to throw; Failed when it does not, or when
// the text lacks `text`.
void require_throws(const std::function<void()>& body, const std::string& text);

// P63: a parameter that is neither persistent nor external is partitioned and has no user.
void require_released(Engined& engine, const std::string& when);
// P64.
void require_persistent_available(Engined& engine, const std::string& when);

}  // namespace zeroproof::peer
