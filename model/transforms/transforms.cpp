#include "model/transforms/transforms.h"

#include <string>
#include <utility>

#include "model/transforms/arguments.h"
#include "model/transforms/layer.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof::func {
namespace {

TensorList wrapped(const TransformFrame& frame, const TensorList& tensors) {
  TensorList wrappers;
  for (const Tensor& tensor : tensors)
    wrappers.push_back(wrap(frame, without_dead_wrappers(tensor)));
  return wrappers;
}

TensorList unwrapped(const TensorList& tensors, const TransformFrame& frame) {
  TensorList inner;
  for (const Tensor& tensor : tensors)
    inner.push_back(unwrap(without_dead_wrappers(tensor), frame));
  return inner;
}

TensorList marked(const TensorList& wrappers, const std::vector<std::size_t>& positions) {
  for (const std::size_t at : positions) wrappers[at].set_requires_grad(true);
  return at_positions(wrappers, positions);
}

// Outputs without a graph at the level drop out; inputs that no other output reaches get zeros.
TensorList grads_of(Autograd& ag, const TensorList& outputs, const TensorList& inputs,
                    const TensorList& cotangents, const BackwardOptions& options) {
  TensorList roots;
  TensorList root_grads;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    if (!cotangents.empty()) root_grads.push_back(cotangents[i]);
  }
  TensorList grads(inputs.size());
  if (!roots.empty()) grads = ag.grad(roots, inputs, root_grads, options);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!grads[i].is_defined()) grads[i] = zeros_like(inputs[i]);
  return grads;
}

void check_scalar(const TensorList& outputs) {
  if (outputs.empty() || !outputs[0].is_defined())
    throw AutogradError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor");
  if (const std::size_t dims = outputs[0].sizes().size(); dims != 0)
    throw AutogradError(
        "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with " +
        std::to_string(dims) + " dims");
}

void check_outputs(const TensorList& outputs, const char* what) {
  if (outputs.empty())
    throw AutogradError(std::string(what) +
                        ": Expected f to be a function that has non-empty output");
  for (const Tensor& output : outputs)
    if (!output.is_defined())
      throw AutogradError(std::string(what) + ": Expected f(*primals) to return only tensors");
}

void check_cotangents(const TensorList& cotangents, const TensorList& outputs) {
  if (cotangents.size() != outputs.size())
    throw AutogradError("Expected as many cotangents as outputs of the function");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (cotangents[i].sizes() != outputs[i].sizes())
      throw AutogradError("Mismatch in shape: grad_output[" + std::to_string(i) +
                          "] and output differ");
}

void check_tangents(const TensorList& tangents, const TensorList& primals) {
  if (primals.empty() || tangents.size() != primals.size())
    throw AutogradError("jvp(f, primals, tangents): Expected one tangent a primal");
  for (std::size_t i = 0; i < primals.size(); ++i)
    if (tangents[i].sizes() != primals[i].sizes())
      throw AutogradError(
          "Trying to set a forward gradient that has a different size than that of the original "
          "Tensor");
}

}  // namespace

GradAndValue grad_and_value(Autograd& ag, const Function& f, const TensorList& args,
                            const GradOptions& options) {
  const auto places = positions(options.argnums, args.size());
  const TransformLevel level(ag, TransformKind::grad);
  const GradMode enabled(ag, true);
  const TensorList wrappers = wrapped(level.frame(), args);
  const TensorList inputs = marked(wrappers, places);
  TensorList outputs = f(wrappers);
  check_scalar(outputs);
  if (!options.has_aux && outputs.size() != 1)
    throw AutogradError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor");
  const TensorList grads =
      grads_of(ag, {outputs[0]}, inputs, {}, {.create_graph = true, .retain_graph = false});
  GradAndValue result{unwrapped(grads, level.frame()), {}, {}};
  outputs = unwrapped(outputs, level.frame());
  result.value = outputs[0];
  result.aux.assign(outputs.begin() + 1, outputs.end());
  return result;
}

Function grad(Autograd& ag, Function f, Argnums argnums) {
  return [&ag, f = std::move(f), argnums = std::move(argnums)](const TensorList& args) {
    return grad_and_value(ag, f, args, {.argnums = argnums}).grads;
  };
}

// The level is gone when the pullback runs; its graph lives on and operations see through its
// wrappers (rule T4).
Vjp vjp(Autograd& ag, const Function& f, const TensorList& primals,
        const std::optional<Argnums>& argnums) {
  const auto places = positions(argnums, primals.size());
  const TransformLevel level(ag, TransformKind::grad);
  const GradMode enabled(ag, true);
  const TensorList wrappers = wrapped(level.frame(), primals);
  const TensorList inputs = marked(wrappers, places);
  const TensorList outputs = f(wrappers);
  check_outputs(outputs, "vjp(f, *primals)");
  const auto pullback = [&ag, outputs, inputs](const TensorList& cotangents) {
    check_cotangents(cotangents, outputs);
    const BackwardOptions options{.create_graph = ag.is_grad_enabled(), .retain_graph = true};
    TensorList grads = grads_of(ag, outputs, inputs, cotangents, options);
    for (Tensor& each : grads) each = without_dead_wrappers(each);
    return grads;
  };
  return {unwrapped(outputs, level.frame()), pullback};
}

Jvp jvp(Autograd& ag, const Function& f, const TensorList& primals, const TensorList& tangents,
        const std::optional<Argnums>& argnums) {
  const auto places = positions(argnums, primals.size());
  check_tangents(tangents, at_positions(primals, places));
  const TransformLevel level(ag, TransformKind::jvp);
  TensorList duals = wrapped(level.frame(), primals);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Tensor primal = without_dead_wrappers(primals[places[i]]);
    duals[places[i]] = wrap_with_tangent(level.frame(), primal, without_dead_wrappers(tangents[i]));
  }
  const TensorList outputs = f(duals);
  check_outputs(outputs, "jvp(f, primals, tangents)");
  Jvp result{unwrapped(outputs, level.frame()), {}};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool is_dual = is_of_level(outputs[i], level.frame());
    const Tensor tangent = is_dual ? outputs[i].wrapper()->tangent : Tensor();
    result.tangents.push_back(tangent.is_defined() ? tangent : zeros_like(result.outputs[i]));
  }
  return result;
}

Function lifted(UnaryFunction f) {
  return [f = std::move(f)](const TensorList& args) { return TensorList{f(args.at(0))}; };
}

UnaryFunction unlifted(Function f) {
  return [f = std::move(f)](const Tensor& x) { return f({x}).at(0); };
}

UnaryFunction grad(Autograd& ag, UnaryFunction f) {
  return unlifted(grad(ag, lifted(std::move(f)), {0}));
}

}  // namespace zeroproof::func
