#include <utility>

#include "model/transforms/arguments.h"
#include "model/transforms/transforms.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::func {
namespace {

Shape joined(Shape sizes, const Shape& more) {
  sizes.insert(sizes.end(), more.begin(), more.end());
  return sizes;
}

// The rows or columns of one tensor out of those of all, `length` from `begin` on.
Tensor part(Autograd& ag, const Tensor& all, std::int64_t dim, Range range) {
  const bool is_all = all.sizes()[static_cast<std::size_t>(dim)] == range.length;
  return is_all ? all : narrow(ag, all, dim, range);
}

// Row i of `rows[a]` is the gradient of element i of all outputs for argument a.
TensorList jacobians_of_rows(Autograd& ag, const TensorList& rows, const TensorList& outputs) {
  TensorList jacobians;
  std::int64_t begin = 0;
  for (const Tensor& output : outputs) {
    for (const Tensor& all : rows) {
      const Shape primal(all.sizes().begin() + 1, all.sizes().end());
      const Tensor own = part(ag, all, 0, {begin, output.numel()});
      jacobians.push_back(reshape(ag, own, joined(output.sizes(), primal)));
    }
    begin += output.numel();
  }
  return jacobians;
}

// Row i of `tangents[o]` is the change of output o with element i of all primals.
TensorList jacobians_of_tangents(Autograd& ag, const TensorList& tangents,
                                 const TensorList& primals) {
  TensorList jacobians;
  for (const Tensor& all : tangents) {
    const Shape output(all.sizes().begin() + 1, all.sizes().end());
    const auto last = static_cast<std::int64_t>(output.size());
    const Tensor columns = movedim(ag, all, 0, last);
    std::int64_t begin = 0;
    for (const Tensor& primal : primals) {
      const Tensor own = part(ag, columns, last, {begin, primal.numel()});
      jacobians.push_back(reshape(ag, own, joined(output, primal.sizes())));
      begin += primal.numel();
    }
  }
  return jacobians;
}

}  // namespace

Function jacrev(Autograd& ag, Function f, Argnums argnums) {
  return [&ag, f = std::move(f), argnums = std::move(argnums)](const TensorList& args) {
    const Vjp pulled = vjp(ag, f, args, argnums);
    const TensorList rows = vmap(ag, pulled.pullback)(standard_basis(pulled.outputs));
    return jacobians_of_rows(ag, rows, pulled.outputs);
  };
}

Function jacfwd(Autograd& ag, Function f, Argnums argnums) {
  return [&ag, f = std::move(f), argnums = std::move(argnums)](const TensorList& args) {
    const TensorList primals = at_positions(args, positions(argnums, args.size()));
    const Function push = [&](const TensorList& tangents) {
      return jvp(ag, f, args, tangents, argnums).tangents;
    };
    return jacobians_of_tangents(ag, vmap(ag, push)(standard_basis(primals)), primals);
  };
}

Function hessian(Autograd& ag, const Function& f, const Argnums& argnums) {
  return jacfwd(ag, jacrev(ag, f, argnums), argnums);
}

UnaryFunction jacrev(Autograd& ag, UnaryFunction f) {
  return unlifted(jacrev(ag, lifted(std::move(f)), {0}));
}

UnaryFunction jacfwd(Autograd& ag, UnaryFunction f) {
  return unlifted(jacfwd(ag, lifted(std::move(f)), {0}));
}

UnaryFunction hessian(Autograd& ag, UnaryFunction f) {
  return unlifted(hessian(ag, lifted(std::move(f)), {0}));
}

}  // namespace zeroproof::func
