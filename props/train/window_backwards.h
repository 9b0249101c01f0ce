#pragma once

#include "props/train/repeated_calls.h"

namespace zeroproof::train {

// The backwards of a generated window, by engines or by hand.
class WindowBackwards {
 public:
  // Both must outlive it.
  WindowBackwards(const WindowContext& window, const RepeatedCalls& repeated);

  // Losses of one forward; inside a context where the micro-batch spans it.
  void run(const MicroSpec& micro, const TensorList& losses);
  // One loss, whose graph may be needed again.
  void run_one(const MicroSpec& micro, const Tensor& given, bool is_needed_again);
  // Of two heads: a backward of each forward and then the others, the later first.
  void run_interleaved(const MicroSpec& micro, const TensorList& first, TensorList second);
  // Of both forwards at once.
  void run_summed(const MicroSpec& micro, const TensorList& first, const TensorList& second);
  // The first one's graph is retained, which one rank alone gives up before the other backward.
  void run_dropping(const MicroSpec& micro, TensorList first, const TensorList& second);
  // Of a loss that no output of the engine is in: the sum of what so many reentrant checkpoints
  // make.
  void run_past_engine(int checkpoints);

  // What the user does with weights between the calls of a micro-batch.
  void look(const MicroSpec& micro, Looks where);

  // From now on.
  struct Failure {
    bool is_on_loss = false;
    bool is_managed = false;  // the backward that throws is the engine's
  };
  void set_failure(const Failure& failure) { failure_ = failure; }
  // Graphs of this window live on behind it.
  bool has_kept() const { return !kept_.empty(); }
  void release_kept() { kept_.clear(); }

 private:
  void run_each(const MicroSpec& micro, const TensorList& losses);
  void run_once(const MicroSpec& micro, const Tensor& given, bool is_needed_again);
  void run_manually(const Tensor& loss, bool retain_graph, int clears = 0);
  bool reads_rounded(const MicroSpec& micro) const;

  const CaseSpec& spec_;
  Pass& pass_;
  EngineTarget* engines_;
  const RepeatedCalls& repeated_;
  Failure failure_;
  TensorList kept_;  // losses of graphs that live on
};

}  // namespace zeroproof::train
