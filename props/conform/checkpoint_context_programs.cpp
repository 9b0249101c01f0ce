// Programs about the contexts that a checkpoint runs its body in: context_fn.
#include <array>

#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr auto kContextKind = CheckpointKind::non_reentrant;

struct Stops {
  bool forward = false;
  bool recompute = false;
};

// A context that marks how it is entered and left, and may stop what passes.
CheckpointContext watching(ProgramRun& c, const std::string& label, bool stops) {
  return {.enter = [&c, label] { c.mark(label + "+"); },
          .exit =
              [&c, label, stops](const std::exception_ptr& error) {
                c.mark(label + "-" + (error ? exception_type(error) : ""));
                return stops;
              }};
}

CheckpointOptions watched(ProgramRun& c, const std::string& label, Stops stops = {}) {
  return {.contexts = [&c, label, stops] {
    return CheckpointContexts{watching(c, label + ".forward", stops.forward),
                              watching(c, label + ".recompute", stops.recompute)};
  }};
}

using Body = std::function<Tensor(const Tensor&)>;

Tensor region(ProgramRun& c, const std::string& label, const Body& body, const Tensor& x,
              Stops stops = {}) {
  return c.ckpt(label, kContextKind, body, x, watched(c, label, stops));
}

void contexts(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Body body = [&](const Tensor& v) { return sin(ag, exp(ag, v)); };
  ag.backward(sq(ag, region(c, "early", body, x)));
  CheckpointOptions late = watched(c, "late");
  late.stops_early = false;
  ag.backward(sq(ag, c.ckpt("late", kContextKind, body, x, late)));
  ag.backward(sq(ag, region(c, "stopped", body, x, {.recompute = true})));
  const Body outer = [&](const Tensor& v) {
    return exp(ag, region(c, "inner", body, tanh(ag, v)));
  };
  ag.backward(sq(ag, region(c, "outer", outer, x)));
  const GradMode no_grad(ag, false);
  region(c, "no_grad", body, x);
}

// Fails at its second run.
Body failing_recompute(Autograd& ag) {
  return [&ag, runs = 0](const Tensor& v) mutable {
    const Tensor first = sin(ag, v);
    if (++runs == 2) throw ValueError("in the recompute");
    return sin(ag, first);
  };
}

void exceptions(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Body failing = [&](const Tensor& v) -> Tensor {
    sin(ag, v);
    throw ValueError("in the body");
  };
  c.guarded([&] { region(c, "forward", failing, x); });
  c.guarded([&] { region(c, "stopped", failing, x, {.forward = true}); });
  const Body outer = [&](const Tensor& v) { return region(c, "inner", failing, tanh(ag, v)); };
  c.guarded([&] { region(c, "outer", outer, x); });
  ag.backward(sq(ag, exp(ag, x)));
  for (const auto& [label, stops] : {std::pair("recompute", false), std::pair("swallowed", true)}) {
    const Tensor loss = sq(ag, region(c, label, failing_recompute(ag), x, {.recompute = stops}));
    c.guarded([&, loss = loss] { ag.backward(loss); });
  }
}

constexpr std::array kContextPrograms = {
    ConformProgram{"P103_ckpt_contexts", contexts},
    ConformProgram{"P104_ckpt_context_exceptions", exceptions},
};

}  // namespace

std::span<const ConformProgram> checkpoint_context_programs() {
  return kContextPrograms;
}

}  // namespace zeroproof
