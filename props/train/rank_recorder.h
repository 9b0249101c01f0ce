#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/journal.h"
#include "props/train/model_recorder.h"
#include "sim/trace/writer.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof::train {

// The groups of a world: all ranks, by that name and by their numbers.
std::vector<GroupRecord> world_groups(std::int32_t world);
// This rank's parts of a world with tensor-parallel groups, by their numbers; else none.
std::vector<GroupRecord> groups_within(const TrainCell& cell, std::int32_t rank);

// The parameters of all engines of a cell.
std::vector<ParamRecord> declared_params(const TrainScenario& scenario, const TrainCell& cell);

// Records one rank: engines write to its journal, and so does what sees their models. Used on the
// thread of its rank.
class RankRecorder final : private EventSink {
 public:
  // Writes what comes before the first event.
  static Result<std::unique_ptr<RankRecorder>> create(const std::string& path,
                                                      const HeaderRecord& header, bool is_stage0);
  RankRecorder(TraceWriter writer, const HeaderRecord& header, bool is_stage0);  // see create()
  ~RankRecorder() override;

  Journal& journal() { return journal_; }
  ModelRecorder& models() { return models_; }
  Result<void> finish();

  // Before any event. Errors come from finish().
  void declare(const ParamRecord& param) { keep(writer_.add(param)); }
  void declare(const GroupRecord& group) { keep(writer_.add(group)); }

 private:
  void on_event(const HookEvent& event) override;
  void keep(Result<void> written);

  TraceWriter writer_;
  NameTable names_;
  Journal journal_;
  ModelRecorder models_;
  std::optional<Error> error_;  // the first one
};

}  // namespace zeroproof::train
