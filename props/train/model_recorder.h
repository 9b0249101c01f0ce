#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/journal.h"
#include "props/train/engine_target.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::train {

// What a module and everything below it are called in events.
struct ModelNames {
  std::string root;    // the module itself: "model"
  std::string prefix;  // before the names of parameters and inner modules; may be empty
};

// Sees modules, graph tasks, transforms, checkpoints and Functions of the models of one rank, and
// writes them to the journal that the rank's engines write to. Used on the thread of its rank.
class ModelRecorder final : public ModelObserver,
                            public AutogradObserver,
                            private GraphTaskListener {
 public:
  // The journal must outlive it. `is_stage0`: the engine has no gradient hooks that write events.
  ModelRecorder(Journal& journal, bool is_stage0) : journal_(journal), is_stage0_(is_stage0) {}

  void watch_model(Autograd& autograd, nn::Module& module, const ModelNames& names);

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

  void on_backward_begin(const BackwardCall& call) override;
  void on_backward_end(std::exception_ptr error) override;
  void on_transform_push(const TransformFrame& frame) override;
  void on_transform_pop(const TransformFrame& frame) override;
  void on_graph_task_begin(GraphTaskId task, bool keeps_graph) override;
  void on_graph_task_end(GraphTaskId, bool) override {}

  void watch(nn::Module& module, const std::string& name);
  void watch_gradients(const nn::Module& module, const std::string& prefix);
  void write_forward(EventKind kind, const std::string& name);
  void write_begin(Call& call);
  NameId name(std::string_view text) { return journal_.names().intern(text); }
  bool is_in_task() const;

  Journal& journal_;
  bool is_stage0_;
  Autograd* autograd_ = nullptr;
  std::vector<Call> calls_;
  std::int64_t next_call_ = 0;
  std::map<std::string, std::int64_t> checkpoint_runs_;
};

}  // namespace zeroproof::train
