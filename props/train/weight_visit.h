#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "props/train/case_spec.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// The user's own business with the weights, in the order and as often as the program of this rank
// has them; the same text for engines and baseline. `spec` and `pass` must outlive the call.
void visit_weights(const CaseSpec& spec, Pass& pass, Gathers gathers);
// `backward` inside a context as `spans` of a micro-batch says, and a look behind it.
void visit_with_backward(const CaseSpec& spec, Pass& pass, int spans,
                         const std::function<void()>& backward);
// Gathers::runs and changes_and_runs: `run` inside the context is the forward.
void visit_with_forward(const CaseSpec& spec, Pass& pass, Gathers gathers,
                        const std::function<void()>& run);
// Of every parameter of the first engine, in their order.
using WeightValues = std::vector<std::vector<double>>;
// Changes the weights in a context, as `weight.data.copy_()` does it; what they were.
WeightValues change_data(const CaseSpec& spec, Pass& pass);
// Looks at the weights in another context, and undoes that.
void set_back(const CaseSpec& spec, Pass& pass, const WeightValues& values);
// Writes the weights' own values to them in a context, which the autograd notices.
void rewrite_weights(const CaseSpec& spec, Pass& pass);
// `body` where the tensors are whole, which in stage 3 takes a context.
void with_whole_weights(const CaseSpec& spec, Pass& pass, const TensorList& weights,
                        const std::function<void()>& body);
// The compiler of skipped frames looks at the weights, and nothing may come of it.
void evaluate_guards(Pass& pass);
// Elements of the first engine's weights that are on this rank right now; nothing of the baseline's
// is sharded: none.
std::int64_t whole_elements(Pass& pass);
// The same of the layer of one call.
std::int64_t whole_elements_of_call(const CaseSpec& spec, Pass& pass, int call);

// What of so many whole elements is none that always stays whole.
std::int64_t elements_to_give_up(const CaseSpec& spec, std::int64_t whole);

}  // namespace zeroproof::train
