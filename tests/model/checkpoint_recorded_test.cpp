// Nested checkpoints as PyTorch 2.11.0 itself ran them: recorded_checkpoints.jsonl holds random
// programs of one input x, two linear layers and two factors, cut into checkpoints of both kinds,
// with the order of bodies, stops and accumulations, and the gradients left at the end.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using nlohmann::json;

Tensor tensor_of(const json& value) {
  if (!value[0].is_array()) return Tensor::of(value.get<std::vector<double>>(), {2});
  std::vector<double> elements;
  for (const json& row : value)
    for (const json& element : row) elements.push_back(element);
  return Tensor::of(elements, {2, 2});
}

// One recorded program, run by us.
class RecordedProgram {
 public:
  explicit RecordedProgram(const json& record) : record_(record) {
    for (const auto& [name, value] : record["params"].items()) {
      Tensor& leaf = leaves_[name] = tensor_of(value);
      leaf.set_requires_grad(true);
      leaf.register_post_accumulate_grad_hook(
          [this, name = name](const Tensor&) { log("acc:" + name); });
    }
  }

  void run() {
    const Tensor loss = sq(ag_, run_steps(record_["steps"], leaves_.at("x")));
    log("fwd");
    const json& calls = record_["calls"];
    for (std::size_t i = 0; i < calls.size(); ++i) {
      try {
        backward(calls[i], loss, i + 1 < calls.size());
        log("bwd");
      } catch (const AutogradError&) {
        log("error");
      }
    }
  }

  const std::string& events() const { return events_; }
  Tensor grad(const std::string& name) const { return leaves_.at(name).grad(); }

 private:
  void log(const std::string& event) { events_ += (events_.empty() ? "" : " ") + event; }

  void backward(const std::string& call, const Tensor& loss, bool retain_graph) {
    const Tensor& x = leaves_.at("x");
    BackwardOptions options{.retain_graph = retain_graph};
    if (call == "grad") {
      ag_.grad({loss}, {x}, options);
      return;
    }
    if (call == "inputs") options.inputs = {leaves_.at("w0"), x};
    ag_.backward(loss, options);
  }

  const Tensor& leaf(const char* kind, const json& step) {
    return leaves_.at(kind + std::to_string(step[1].get<int>()));
  }

  Tensor run_steps(const json& steps, Tensor t) {
    for (const json& step : steps) t = run_step(step, t);
    return t;
  }

  Tensor run_step(const json& step, const Tensor& t) {
    const std::string kind = step[0];
    if (kind == "tanh") return tanh(ag_, t);
    if (kind == "sin") return sin(ag_, t);
    if (kind == "lin") return linear(ag_, t, leaf("w", step), leaf("b", step));
    if (kind == "mulp") return mul(ag_, t, leaf("p", step));
    if (kind == "pen") return penalty(t, leaf("p", step));
    if (kind == "ckpt") return run_checkpoint(step, t);
    const Tensor left = run_steps(step[1], t);
    return add(ag_, left, run_steps(step[2], t));
  }

  // A backward inside the body (rule K11).
  Tensor penalty(const Tensor& t, const Tensor& factor) {
    const Tensor u = t.detach();
    u.set_requires_grad(true);
    const Tensor y = sin(ag_, mul(ag_, u, factor));
    return add(ag_, t, ag_.grad({sum(ag_, y)}, {u}, {.create_graph = true})[0]);
  }

  Tensor run_checkpoint(const json& step, const Tensor& t) {
    const std::string label = step[1];
    const bool is_reentrant = step[2] == "R";
    const auto body = [this, label, &steps = step[4]](const TensorList& inputs) {
      log("+" + label);
      try {
        const Tensor output = run_steps(steps, inputs[0]);
        log("-" + label);
        return TensorList{output};
      } catch (const StopRecomputation&) {
        log("stop:" + label);
        throw;
      } catch (const AutogradError&) {
        log("exc:" + label);
        throw;
      }
    };
    if (is_reentrant) return checkpoint(ag_, CheckpointKind::reentrant, body, {t})[0];
    const CheckpointEarlyStop early_stop(ag_, step[3]);
    return checkpoint(ag_, CheckpointKind::non_reentrant, body, {t})[0];
  }

  const json& record_;
  const CpuOps ops_{};
  Autograd ag_{ops_};
  std::map<std::string, Tensor> leaves_;
  std::string events_;
};

void expect_near(const Tensor& recorded, const Tensor& ours, const std::string& name) {
  const std::vector<double> expected = recorded.values();
  double scale = 1.0;
  for (const double value : expected) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(expected[i], ours.values()[i], 1e-12 * scale) << name;
}

TEST(RecordedCheckpoints, Run_bodies_in_the_recorded_order_to_the_recorded_gradients) {
  std::ifstream file(ZP_SOURCE_DIR "/tests/model/recorded_checkpoints.jsonl");
  int programs = 0;
  for (std::string line; std::getline(file, line); ++programs) {
    SCOPED_TRACE(line);
    const json record = json::parse(line);
    RecordedProgram program(record);
    program.run();
    EXPECT_EQ(program.events(), record["events"].get<std::string>());
    for (const auto& [name, value] : record["grads"].items()) {
      ASSERT_EQ(program.grad(name).is_defined(), !value.is_null()) << name;
      if (!value.is_null()) expect_near(tensor_of(value), program.grad(name), name);
    }
  }
  EXPECT_EQ(programs, 120);
}

}  // namespace
}  // namespace zeroproof
