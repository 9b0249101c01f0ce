#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// torch.func: functions of tensors into functions of tensors. They nest in every way. What a
// function captures is a constant to the transform, and keeps its graph at the levels around it
// (rules T2, T7). Every call throws AutogradError where PyTorch raises RuntimeError or ValueError.
namespace func {

using Function = std::function<TensorList(const TensorList& args)>;
using UnaryFunction = std::function<Tensor(const Tensor& x)>;

// Positions of the differentiated arguments; negative ones count from the end.
using Argnums = std::vector<std::int64_t>;

struct GradOptions {
  Argnums argnums = {0};
  bool has_aux = false;  // what f returns after the first tensor is not differentiated
};

struct GradAndValue {
  TensorList grads;  // one an argnum
  Tensor value;
  TensorList aux;
};

// f returns a scalar. One level and one graph task inside it (rule T3).
GradAndValue grad_and_value(Autograd& ag, const Function& f, const TensorList& args,
                            const GradOptions& options = {});
Function grad(Autograd& ag, Function f, Argnums argnums = {0});
UnaryFunction grad(Autograd& ag, UnaryFunction f);

// `pullback` takes one cotangent an output, any number of times, after the level is gone (T4).
struct Vjp {
  TensorList outputs;
  Function pullback;
};

// Without argnums every argument is differentiated.
Vjp vjp(Autograd& ag, const Function& f, const TensorList& primals,
        const std::optional<Argnums>& argnums = {});

struct Jvp {
  TensorList outputs;
  TensorList tangents;  // zeros where an output does not depend on the primals
};

// One tangent a differentiated argument.
Jvp jvp(Autograd& ag, const Function& f, const TensorList& primals, const TensorList& tangents,
        const std::optional<Argnums>& argnums = {});

// Jacobians of sizes output + argument: for each output in turn one an argnum.
Function jacrev(Autograd& ag, Function f, Argnums argnums = {0});
Function jacfwd(Autograd& ag, Function f, Argnums argnums = {0});
// jacfwd(jacrev(f)) (rule T5).
Function hessian(Autograd& ag, const Function& f, const Argnums& argnums = {0});
UnaryFunction jacrev(Autograd& ag, UnaryFunction f);
UnaryFunction jacfwd(Autograd& ag, UnaryFunction f);
UnaryFunction hessian(Autograd& ag, UnaryFunction f);

// The mapped dimension of each argument (none: not mapped) and of each output; empty: 0 for all.
struct VmapDims {
  std::vector<std::optional<std::int64_t>> in = {};
  std::vector<std::int64_t> out = {};
};

Function vmap(Autograd& ag, Function f, VmapDims dims = {});
UnaryFunction vmap(Autograd& ag, UnaryFunction f);

Function lifted(UnaryFunction f);
UnaryFunction unlifted(Function f);

}  // namespace func
}  // namespace zeroproof
