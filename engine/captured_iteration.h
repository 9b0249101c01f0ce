#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine_counters.h"
#include "engine/zero/zero_context.h"

namespace zeroproof {

// One iteration of an engine whose device work is captured once and replayed; see Engine::capture.
class CapturedIteration {
 public:
  // `context` must outlive it.
  explicit CapturedIteration(ZeroContext& context) : context_(context) {}

  // Which property of the runtime or the configuration rules a capture out, and what to do instead.
  // Empty for none.
  std::string obstacle() const;

  // Runs the iteration, whose device work is queued to the graph and not done. It moves `counters`,
  // which must then say one step more. UsageError otherwise, without a graph.
  void capture(const std::function<void()>& iteration, const EngineCounters& counters);
  bool is_captured() const { return graph_ != nullptr; }
  void forget() { graph_ = nullptr; }

  // The device work of the iteration is done once more.
  void run();
  // Adds what one iteration counts.
  void count(EngineCounters& counters) const;
  // Of the last run. The host waits for the device.
  double grad_norm() const;

 private:
  ZeroContext& context_;
  std::unique_ptr<DeviceGraph> graph_;
  EngineCounters counts_;  // of one iteration
};

}  // namespace zeroproof
