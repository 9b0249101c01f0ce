#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/journal.h"
#include "model/names.h"
#include "props/train/model_recorder.h"
#include "sim/trace/writer.h"

namespace zeroproof::train {

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

  // Of the file, before any event; models are made on several threads of control.
  Result<void> declare(nn::Module& module, const std::string& prefix, DType dtype);

 private:
  void on_event(const HookEvent& event) override;
  void keep(Result<void> written);

  TraceWriter writer_;
  NameTable names_;
  Journal journal_;
  ModelRecorder models_;
  std::int64_t next_param_ = 0;
  std::optional<Error> error_;  // the first one
};

}  // namespace zeroproof::train
