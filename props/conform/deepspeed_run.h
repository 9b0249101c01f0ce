#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/journal.h"
#include "props/conform/deepspeed_models.h"
#include "props/conform/deepspeed_recording.h"
#include "props/conform/deepspeed_sink.h"
#include "props/train/model_recorder.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/quirks.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {

// How our engine runs what DeepSpeed ran.
struct EngineBehaviour {
  std::string policy = "deepspeed-0.18.7";
  Quirks quirks = Quirks::upstream();
};

// The engine configuration of record_deepspeed.py for a recorded run, with the defaults of the
// recorded release.
ZeroConfig deepspeed_config(const DeepspeedRecording& recorded);

// The scenario goes on where the recorded run had ended: there is no such input.
struct RecordingEnds {};

// What takes down one rank's run. Made before the rank's thread runs, which then uses it.
struct DeepspeedNotes {
  explicit DeepspeedNotes(const HeaderRecord& recorded)
      : journal(sink, names, recorded.rank), models(journal, recorded.stage == 0) {
    recording.header = recorded;
  }

  NameTable names;
  DeepspeedRecording recording;
  DeepspeedSink sink{recording, names};
  Journal journal;
  train::ModelRecorder models;
};

// One rank of one scenario of record_deepspeed.py: engines with the recorded parameters, and the
// recorded inputs one after the other. Used on the thread of its rank.
class DeepspeedRun {
 public:
  // All references must outlive it.
  DeepspeedRun(const DeepspeedRecording& recorded, DeepspeedNotes& notes, Runtime& runtime,
               const EngineBehaviour& behaviour);

  Autograd& autograd() { return autograd_; }
  Engine& engine(std::size_t index = 0) { return *engines_.at(index).engine; }
  DType dtype() const { return config_.model_dtype(); }

  // `name`: of one engine among several. `leaf`: a leaf module of stage 3.
  void add_engine(DeepspeedModel kind, const std::string& name = {}, const std::string& leaf = {});

  // The next recorded input, in the model's dtype. Throws RecordingEnds.
  Tensor data();

  // Of engines that are added after it.
  void set_accumulation_steps(std::int64_t steps) { config_.gradient_accumulation_steps = steps; }

  // engine.backward, with what the recorded release of DeepSpeed does around it.
  void backward(const Tensor& loss, const BackwardArguments& arguments = {}, std::size_t index = 0);

  void mark(std::string_view label) { notes_.journal.write(EventKind::mark, label); }
  void write(EventKind kind) { notes_.journal.write(kind, {}); }
  // An exception becomes an event; false when one passed.
  bool guarded(const std::function<void()>& body);
  void dump(std::string_view role, const std::string& name, const Tensor& value);
  // The gradients that the next step would use; they are not part of the order.
  void compare_grads(const std::string& tag, std::size_t index = 0);
  void step(std::size_t index = 0);

  // The parameters as they are at the end.
  void finish();

 private:
  struct Trained {
    std::shared_ptr<nn::Module> module;
    std::unique_ptr<Engine> engine;
  };

  void queue_tracker_callback();
  Tensor parameter(const std::string& name) const;
  Tensor tensor_of(const TensorRecord& record, DType dtype) const;
  void dump_parameters(Trained& trained);
  void paused(const std::function<void()>& body);

  const DeepspeedRecording& recorded_;
  DeepspeedNotes& notes_;
  Runtime& runtime_;
  EngineBehaviour behaviour_;
  ZeroConfig config_;
  Autograd autograd_;
  std::vector<Trained> engines_;
  std::size_t next_input_ = 0;
};

// Python's name of what an engine or a model threw: "AssertionError".
std::string python_exception(const std::exception_ptr& error);

// One scenario.
struct DeepspeedProgram {
  std::string_view name;
  void (*run)(DeepspeedRun& run);
};

// Null for a scenario without a port.
const DeepspeedProgram* find_deepspeed_program(std::string_view name);

}  // namespace zeroproof
