#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/journal.h"
#include "model/autograd.h"
#include "model/names.h"
#include "props/train/engine_target.h"
#include "sim/trace/writer.h"

namespace zeroproof::train {

// Records one rank: engines write to its journal, and this sees modules, graph tasks, checkpoints
// and Functions of the models. Used on the thread of its rank.
class RankRecorder final : public ModelObserver,
                           public AutogradObserver,
                           private EventSink,
                           private GraphTaskListener {
 public:
  // Writes what comes before the first event.
  static Result<std::unique_ptr<RankRecorder>> create(const std::string& path,
                                                      const HeaderRecord& header, bool is_stage0);
  ~RankRecorder() override;

  Journal& journal() { return journal_; }
  Result<void> finish();

  // Of the file, before any event; models are made on several threads of control.
  Result<void> declare(nn::Module& module, const std::string& prefix, DType dtype);

  void on_model(Autograd& autograd, nn::Module& module, const std::string& prefix) override;
  TensorList run_checkpoint(std::string_view label,
                            const std::function<TensorList()>& body) override;
  void on_function(EventKind kind, std::string_view label) override;

 private:
  struct Call {
    std::int64_t number = 0;
    std::int64_t parent = -1;
    GraphTaskId task;
    bool has_begun = false;
  };

  RankRecorder(TraceWriter writer, const HeaderRecord& header, bool is_stage0);

  void on_event(const HookEvent& event) override;
  void on_backward_begin(const BackwardCall& call) override;
  void on_backward_end(std::exception_ptr error) override;
  void on_transform_push(const TransformFrame& frame) override;
  void on_transform_pop(const TransformFrame& frame) override;
  void on_graph_task_begin(GraphTaskId task, bool keeps_graph) override;
  void on_graph_task_end(GraphTaskId, bool) override {}

  void watch(nn::Module& module, const std::string& name);
  void write_forward(EventKind kind, const std::string& name);
  void write_begin(Call& call);
  void keep(Result<void> written);
  bool is_in_task() const;

  TraceWriter writer_;
  NameTable names_;
  Journal journal_;
  bool is_stage0_;
  Autograd* autograd_ = nullptr;
  std::vector<Call> calls_;
  std::int64_t next_call_ = 0;
  std::int64_t next_param_ = 0;
  std::map<std::string, std::int64_t> checkpoint_runs_;
  std::optional<Error> error_;  // the first one
};

}  // namespace zeroproof::train
