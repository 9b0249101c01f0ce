// Several backwards over one retained graph, clean or with one that throws.
#include <gtest/gtest.h>

#include "props/report/train_report.h"
#include "props/train/programs.h"
#include "props/train/train_run.h"

namespace zeroproof::train {
namespace {

enum class Between { nothing, zero_grad };
enum class Abort { never, first, second };

// Throws once from the middle of a backward: the head's gradients are there, the trunk's are not.
void abort_next(Pass& pass, const Tensor& loss, bool retain_graph) {
  HookHandle hook;
  for (const nn::NamedParameter& parameter : pass.target().module(0).named_parameters())
    if (parameter.name == "trunk.linear.weight")
      hook = parameter.tensor.register_hook(
          [](const Tensor&) -> Tensor { throw Injected("injected"); });
  EXPECT_THROW(pass.differentiate(loss, retain_graph), Injected);
  hook.remove();
}

template <Between between, Abort abort>
void retained_window(Pass& pass) {
  TensorList losses = pass.target().forward(0, pass.next_inputs());
  if (abort == Abort::first) {
    abort_next(pass, losses.at(0), true);
    losses = pass.target().forward(0, pass.next_inputs());
  }
  pass.differentiate(losses.at(0), true);
  if (between == Between::zero_grad) pass.target().zero_grad(0);
  if (abort == Abort::second) {
    abort_next(pass, losses.at(1), false);
    losses = pass.target().forward(0, pass.next_inputs());
  }
  pass.differentiate(losses.at(1));
  pass.step();
}

using Window = void (*)(Pass&);

struct RetainedCase {
  const char* name;
  Window window;
  bool has_idle_head;  // zero_grad drops all that the first loss gave
};

constexpr RetainedCase kCases[] = {
    {"sum", retained_window<Between::nothing, Abort::never>, false},
    {"sum, first throws", retained_window<Between::nothing, Abort::first>, false},
    {"sum, second throws", retained_window<Between::nothing, Abort::second>, false},
    {"zero_grad", retained_window<Between::zero_grad, Abort::never>, true},
    {"zero_grad, first throws", retained_window<Between::zero_grad, Abort::first>, true},
    {"zero_grad, second throws", retained_window<Between::zero_grad, Abort::second>, true},
};

TrainScenario scenario_of(const RetainedCase& retained) {
  return {.name = "retained",
          .summary = retained.name,
          .window = retained.window,
          .models = {ModelKind::two_losses},
          .forwards = 2,
          .uses = 2,
          .idle_parameters = retained.has_idle_head ? "ha" : ""};
}

struct Way {
  BackwardKind backward;
  Precision precision;  // fp16: scale(loss, retain_graph) comes before a manual backward
};

TEST(RetainedGraphs, Every_backward_counts_once_and_an_aborted_one_not_at_all) {
  constexpr Way kWays[] = {{BackwardKind::engine, Precision::float32},
                           {BackwardKind::engine, Precision::fp16},
                           {BackwardKind::tensor, Precision::fp16},
                           {BackwardKind::tensor, Precision::bf16}};
  for (const int stage : {1, 2, 3})
    for (const Way& way : kWays)
      for (const RetainedCase& retained : kCases) {
        TrainCell cell;
        cell.stage = stage;
        cell.backward = way.backward;
        cell.precision = way.precision;
        const TrainReport report = train(scenario_of(retained), cell, {.has_baseline = true});
        EXPECT_EQ(CellStatus::equal, report.status)
            << retained.name << ": " << train_text(report, Palette());
      }
}

}  // namespace
}  // namespace zeroproof::train
