#include "props/train/window_backwards.h"

#include "props/train/user_gradients.h"
#include "props/train/weight_visit.h"
#include "props/train/window_records.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {

WindowBackwards::WindowBackwards(const WindowContext& window, const RepeatedCalls& repeated)
    : spec_(window.spec), pass_(window.pass), engines_(window.engines), repeated_(repeated) {}

void WindowBackwards::run(const MicroSpec& micro, const TensorList& losses) {
  if (micro.spans == 0) return run_each(micro, losses);
  visit_with_backward(spec_, pass_, micro.spans, [&] { run_each(micro, losses); });
}

void WindowBackwards::run_each(const MicroSpec& micro, const TensorList& losses) {
  if (losses.size() == 1) return run_one(micro, losses.front(), false);
  switch (static_cast<Losses>(micro.losses)) {
    case Losses::both:
      run_one(micro, losses.at(0), true);
      look(micro, Looks::between);
      run_one(micro, losses.at(1), false);
      return;
    case Losses::first:
      return run_one(micro, losses.at(0), false);
    case Losses::second:
      return run_one(micro, losses.at(1), false);
    case Losses::sum:
      return run_one(micro, add(pass_.autograd(), losses.at(0), losses.at(1)), false);
  }
}

void WindowBackwards::run_one(const MicroSpec& micro, const Tensor& given, bool is_needed_again) {
  if (micro.again == 0) return run_once(micro, given, is_needed_again);
  MicroSpec last = micro;
  last.creates = 0;
  run_once(micro, given, micro.creates == 0);
  run_once(last, given, is_needed_again);
}

void WindowBackwards::run_once(const MicroSpec& micro, const Tensor& given, bool is_needed_again) {
  const RepeatedCalls::Armed armed(repeated_, {Shortage::backward, Shortage::epilogue});
  const Tensor shaped = micro.keeps_dimension != 0 ? reshape(pass_.autograd(), given, {1}) : given;
  const Tensor loss = failure_.is_on_loss ? raising(pass_.autograd(), shaped) : shaped;
  const bool retain_graph = is_needed_again || micro.keeps == 1 || micro.keeps == 3;
  if (micro.keeps == 1 || micro.keeps == 2) kept_.push_back(loss);
  const bool is_undivided = micro.is_undivided != 0;
  const bool is_managed = failure_.is_managed && spec_.engines == 1;
  const bool is_manual = pass_.is_manual() || micro.by_hand != 0;
  if (is_undivided || is_managed || !is_manual) {
    const Tensor returned = pass_.target().backward(0, loss,
                                                    {.retain_graph = retain_graph,
                                                     .create_graph = micro.creates != 0,
                                                     .scale_wrt_gas = !is_undivided});
    if (!reads_rounded(micro)) pass_.target().record("returned", returned);
    // Whoever adds them up would keep all graphs.
    const bool keeps_graph = engines_ && !returned.is_same(loss) && returned.requires_grad();
    record_number(pass_, "graphs of returned losses", keeps_graph ? 1.0 : 0.0);
  } else if (spec_.engines == 2 && spec_.takes_turns == 0) {
    pass_.target().tensor_backward({loss}, {}, retain_graph);  // scaled already
  } else {
    run_manually(loss, retain_graph, micro.clears);
  }
}

// The second graph is gone when the first one is differentiated for the last time.
void WindowBackwards::run_interleaved(const MicroSpec& micro, const TensorList& first,
                                      TensorList second) {
  run_one(micro, first.at(0), true);
  run_one(micro, second.at(0), true);
  look(micro, Looks::between);
  run_one(micro, second.at(1), false);
  second.clear();
  run_one(micro, first.at(1), false);
}

void WindowBackwards::run_summed(const MicroSpec& micro, const TensorList& first,
                                 const TensorList& second) {
  TensorList sums;
  for (std::size_t i = 0; i < first.size(); ++i)
    sums.push_back(add(pass_.autograd(), first[i], second[i]));
  run(micro, sums);
}

// On one rank nobody can come back to the first graph, though it was kept; on others they could.
void WindowBackwards::run_dropping(const MicroSpec& micro, TensorList first,
                                   const TensorList& second) {
  MicroSpec keeping = micro;
  keeping.keeps = 3;
  run(keeping, first);
  if (micro.drops_on == pass_.target().rank() + 1) first.clear();
  run(micro, second);
}

void WindowBackwards::run_past_engine(int checkpoints) {
  const GeneratedModel& model = model_of(pass_, 0);
  TensorList inputs = pass_.next_inputs();
  const auto body = [&](const TensorList& given) {
    return TensorList{model.bypass(pass_.autograd(), given)};
  };
  const bool is_wrapped = checkpoints > 0 && engines_ != nullptr;
  if (is_wrapped) inputs.at(0).set_requires_grad(true);
  const auto loss = [&] {
    if (!is_wrapped) return body(inputs).at(0);
    return checkpoint(pass_.autograd(), kind_of(Wrap::reentrant), body, inputs).at(0);
  };
  Tensor sum = loss();
  for (int more = 1; more < checkpoints; ++more) sum = add(pass_.autograd(), sum, loss());
  run_manually(sum, false);
}

void WindowBackwards::look(const MicroSpec& micro, Looks where) {
  if (static_cast<Looks>(micro.looks) == where) visit_weights(spec_, pass_, Gathers::looks);
}

void WindowBackwards::run_manually(const Tensor& loss, bool retain_graph, int clears) {
  Tensor root = loss;
  if (pass_.target().needs_scaler(0)) {
    root = pass_.target().scale(0, loss, retain_graph);
    pass_.target().record("scaled", root.detach());
  }
  if (clears == 3) clear_gradients(spec_, pass_);
  if (clears == 4) {
    const GradMode no_grad(pass_.autograd(), false);
    record_loss(pass_, pass_.target().forward(0, pass_.next_inputs()).at(0));
  }
  if (clears == 5) {
    const Tensor other = pass_.target().forward(0, pass_.next_inputs()).at(0);
    record_loss(pass_, other);
    pass_.target().backward(0, other, {});
  }
  pass_.target().tensor_backward({root}, {}, retain_graph);
}

// Past the engine, stage 3 under autocast has weights rounded for the wire, the baseline whole.
bool WindowBackwards::reads_rounded(const MicroSpec& micro) const {
  return micro.has_bypass != 0 && static_cast<Precision>(spec_.precision) == Precision::autocast;
}

}  // namespace zeroproof::train
