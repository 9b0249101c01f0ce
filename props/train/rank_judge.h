#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/journal.h"
#include "props/replay/properties_level.h"
#include "props/stream_properties.h"
#include "props/train/model_recorder.h"
#include "props/train/scenario.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof::train {

// What a judge knows of a rank before it runs.
struct RankFacts {
  RunFacts run;
  std::vector<GroupRecord> groups;
  std::vector<std::string> params;  // of all engines
};

// Judges one rank while it trains: what a recorder would write goes to the monitors of `replay`,
// what its streams do to those of P46 to P48. Does not keep the events. Used on the thread of
// its rank; finish() and report() after that.
class RankJudge final : private EventSink {
 public:
  explicit RankJudge(const RankFacts& facts);
  // Both are read here only.
  RankJudge(const TrainScenario& scenario, const TrainCell& cell, std::int32_t rank);
  ~RankJudge() override;

  RankObservers observers() { return {.journal = &journal_, .accesses = &streams_}; }
  ModelRecorder& models() { return models_; }
  // Sees the events as well, in their order; must outlive the run. Their names are in names().
  void listen(EventSink& listener) { listener_ = &listener; }
  const NameTable& names() const { return names_; }

  // `is_complete`: the program of the rank came to its end. Call once.
  void finish(bool is_complete);

  // Of this rank alone; what compares ranks is for a RunGroup.
  PropertiesReport report() const;
  const PropertiesLevel& level() const { return level_; }

 private:
  void on_event(const HookEvent& event) override {
    level_.on_event(event);
    if (listener_) listener_->on_event(event);
  }

  NameTable names_;
  JobFacts job_;
  PropertiesLevel level_;
  StreamOrderCheck streams_;
  Journal journal_;
  ModelRecorder models_;
  EventSink* listener_ = nullptr;
};

}  // namespace zeroproof::train
