// Several backwards over one retained graph, clean or with one that throws; and in stage 3, what is
// gathered for them and when it goes.
#include <gtest/gtest.h>

#include <algorithm>

#include "props/report/train_report.h"
#include "props/train/engine_target.h"
#include "props/train/programs.h"
#include "props/train/train_run.h"

namespace zeroproof::train {
namespace {

enum class Between { nothing, zero_grad };
enum class Abort { never, first, second };
enum class End { backward, death };  // of the graph: a backward that does not retain it, or its own

// Checks an engine in stage 3; the baseline and other stages, which do not gather, are not checked.
class Gathered {
 public:
  explicit Gathered(Pass& pass) {
    auto* target = dynamic_cast<EngineTarget*>(&pass.target());
    if (target && target->engine(0).config().stage == 3) engine_ = &target->engine(0);
  }

  // Exactly the parameters of the modules with these names are in memory.
  void expect(const std::vector<std::string>& modules, const char* when) const {
    if (!engine_) return;
    for (const nn::NamedParameter& parameter : engine_->module().named_parameters()) {
      const std::string module = parameter.name.substr(0, parameter.name.find('.'));
      const bool is_needed = std::ranges::find(modules, module) != modules.end();
      EXPECT_EQ(parameter.tensor.numel() > 0, is_needed) << parameter.name << " " << when;
    }
  }

  // How many collectives `body` issues; a barrier gives the number of the next.
  void expect_collectives(std::int64_t expected, const std::function<void()>& body) const {
    if (!engine_) return body();
    const std::int64_t before = barrier();
    body();
    EXPECT_EQ(barrier() - before - 1, expected);
  }

 private:
  std::int64_t barrier() const {
    Runtime& runtime = engine_->runtime();
    return runtime.group(GroupKind::data).barrier(runtime.stream(StreamRole::compute)).sequence;
  }

  Engine* engine_ = nullptr;
};

void expect_clear(Pass& pass) {
  if (auto* target = dynamic_cast<EngineTarget*>(&pass.target())) {
    const BackwardState state = target->engine(0).hook_state();
    EXPECT_EQ(state.active_depth, 0);
    EXPECT_FALSE(state.is_callback_queued);
  }
}

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

template <Between between, Abort abort, End end>
void retained_window(Pass& pass) {
  const Gathered gathered(pass);
  TensorList losses = pass.target().forward(0, pass.next_inputs());
  if (abort == Abort::first) {
    abort_next(pass, losses.at(0), true);
    gathered.expect({}, "after the first failed");
    expect_clear(pass);
    losses = pass.target().forward(0, pass.next_inputs());
  }
  pass.differentiate(losses.at(0), true);
  if (between == Between::zero_grad) pass.target().zero_grad(0);
  gathered.expect({"trunk", "ha"}, "between the two");
  if (abort == Abort::second) {
    abort_next(pass, losses.at(1), false);
    gathered.expect({}, "after the second failed");
    expect_clear(pass);
    losses = pass.target().forward(0, pass.next_inputs());
    pass.differentiate(losses.at(1), end == End::death);
  } else {
    // The other head is gathered, the trunk is there; one reduction.
    gathered.expect_collectives(2, [&] { pass.differentiate(losses.at(1), end == End::death); });
  }
  if (end == End::death) losses.clear();
  gathered.expect({}, "when no graph lives");
  expect_clear(pass);
  pass.step();
}

using Window = void (*)(Pass&);

template <Between between, Abort abort>
constexpr Window kWindows[] = {retained_window<between, abort, End::backward>,
                               retained_window<between, abort, End::death>};

struct RetainedCase {
  const char* name;
  const Window (&windows)[2];
  bool has_idle_head;  // zero_grad drops all that the first loss gave
};

constexpr RetainedCase kCases[] = {
    {"sum", kWindows<Between::nothing, Abort::never>, false},
    {"sum, first throws", kWindows<Between::nothing, Abort::first>, false},
    {"sum, second throws", kWindows<Between::nothing, Abort::second>, false},
    {"zero_grad", kWindows<Between::zero_grad, Abort::never>, true},
    {"zero_grad, first throws", kWindows<Between::zero_grad, Abort::first>, true},
    {"zero_grad, second throws", kWindows<Between::zero_grad, Abort::second>, true},
};

TrainScenario scenario_of(const RetainedCase& retained, End end) {
  return {.name = "retained",
          .summary = retained.name,
          .window = retained.windows[end == End::death],
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
      for (const RetainedCase& retained : kCases)
        for (const End end : {End::backward, End::death}) {
          TrainCell cell;
          cell.stage = stage;
          cell.backward = way.backward;
          cell.precision = way.precision;
          const TrainReport report =
              train(scenario_of(retained, end), cell, {.has_baseline = true});
          EXPECT_EQ(CellStatus::equal, report.status)
              << retained.name << ": " << train_text(report, Palette());
        }
}

}  // namespace
}  // namespace zeroproof::train
