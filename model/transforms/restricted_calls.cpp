#include "model/transforms/restricted_calls.h"

#include <string>

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

void refuse_inside(const Autograd& ag, const char* method) {
  if (!ag.local().transforms) return;
  throw AutogradError("You are attempting to call Tensor." + std::string(method) +
                      "() inside of a function being transformed by a functorch transform");
}

}  // namespace

void requires_grad_(Autograd& ag, const Tensor& x, bool requires_grad) {
  refuse_inside(ag, "requires_grad_");
  x.set_requires_grad(requires_grad);
}

void retain_grad(Autograd& ag, const Tensor& x) {
  refuse_inside(ag, "retain_grad");
  x.retain_grad();
}

}  // namespace zeroproof
