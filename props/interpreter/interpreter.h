#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "props/interpreter/data_plan.h"
#include "props/interpreter/target.h"
#include "props/program/contract.h"
#include "props/program/program.h"

namespace zeroproof::program {

// Runs the statements of a program on one rank of a target, and notes what it sees. The same text
// for engines and reference.
class Interpreter {
 public:
  // The world that runs: a resumed one has other ranks and another stage than the program's first.
  struct Place {
    int ranks = 1;
    int stage = 0;
  };
  // All must outlive it.
  Interpreter(const Program& program, const Contract& contract, const DataPlan& data,
              const Place& place, Target& target);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Top-level statements [begin, end). Throws what the target throws where it is not expected.
  void run(std::size_t begin, std::size_t end);

  Observations take_seen() { return std::move(seen_); }

 private:
  // A loss, or what else a statement gives.
  struct Value {
    Tensor tensor;
    std::vector<std::size_t> engines;    // whose outputs are in it
    std::vector<std::int64_t> forwards;  // by number, that its graph is made of
    bool is_rounded = false;             // of weights past the engine, as the wire has rounded them
  };

  void run(const Body& body);
  void run(const Statement& statement);
  void run_refused(const Statement& statement, const Expectation& expected);
  bool is_refused(const Statement& statement, const Expectation& expected);

  void execute(const Forward& forward);
  void execute(const CallModule& call);
  void execute(const Sum& sum);
  void execute(const Scale& scale);
  void execute(const Backward& backward);
  void execute(const Step& step);
  void execute(const ZeroGrad& zero);
  void execute(const SetBoundary& set);
  void execute(const SetScale& set);
  void execute(const SetLearningRate& set);
  void execute(const SetGrad& set);
  void execute(const Freeze& freeze);
  void execute(const Drop& drop);
  void execute(const Block& block);
  void execute(const Transform& transform);
  void execute(const Raise& raise);
  void execute(const Catch& caught);
  void execute(const OutOfMemory& out);
  void execute(const Save& save);
  void execute(const Load& load);
  void execute(const Recreate& recreate);
  void execute(const Resume&) {}  // the run begins again there
  void execute(const Inspect& inspect);
  void execute(const RegisterExternal& external);
  void execute(const SetLeaf& leaf);
  void execute(const EvaluateGuards& guards);
  void execute(const ReleaseGathered& release);
  void execute(const TemporaryEngine& temporary);
  void execute(const TryConfig& tried);
  void execute(const ForeignBackward& foreign);

  std::shared_ptr<const ForwardPlan> plan_of(const Forward& forward, std::int64_t number);
  bool is_differentiated(std::int64_t forward) const;
  void see_loss(const std::string& name, const Tensor& loss, bool is_rounded);
  void run_hook(const Hook& hook);
  void run_backward(const std::vector<std::int64_t>& forwards,
                    const std::function<void()>& backward);
  void keep_outputs(const Forward& forward, std::int64_t number, const TensorList& outputs);
  int role() const { return data_.change().role_of(target_.rank(), place_.ranks); }
  bool is_silent(const std::string& name) const { return data_.change().silent.contains(name); }
  TensorList next_inputs(const std::string& engine);
  void make_leaf(const Tensor& input);
  TensorList placed(TensorList inputs) const;  // where the target's tensors live
  void gather(const Block& block);
  void gather_nan(const Block& block, const TensorList& named, const TensorList& parameters);
  // What was seen from there on.
  void leave_unspecified(std::size_t first);
  void write(const Tensor& weight, const std::vector<double>& values);
  void change_weights(const Block& block, const TensorList& parameters);
  TensorList parameters_of(const Block& block);
  std::size_t index_of(const std::string& engine) const;
  Value& value(const std::string& name);
  void see(Observed what, const std::string& name, const Tensor& tensor);
  void see(Observed what, const std::string& name, double number);

  const Program& program_;
  const Contract& contract_;
  const DataPlan& data_;
  Place place_;
  Target& target_;
  Observations seen_;
  std::map<std::string, Value> values_;
  std::vector<std::vector<std::int64_t>> backwards_;  // forwards of each that runs
  std::int64_t forward_ = 0;                          // the next one's number
  std::vector<std::int64_t> slots_;                   // of each engine's next forward in its window
  bool creates_graphs_;  // of gradients, which lead back to their leaves
  TensorList leaves_;    // inputs of such a program
  int hooks_ = 0;        // around what runs
  int changes_ = 0;      // of weights so far
};

}  // namespace zeroproof::program
