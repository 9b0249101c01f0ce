// tests/unit/v1/zero/test_zero_functorch_linear.py: the linear function of stage 3 by itself.
#include <array>

#include "engine/zero/stage3/zero3_linear.h"
#include "model/autocast/autocast.h"
#include "model/transforms/transforms.h"
#include "tests/peer/support/training.h"
#include "zeroproof/internal/model/node.h"

namespace zeroproof::peer {
namespace {

struct Operands {
  Tensor x;
  Tensor weight;
  Tensor bias;
  TensorList list() const { return {x, weight, bias}; }
};

Operands make_operands(const Shape& x) {
  Operands operands{sample(x, 1), sample({3, 4}, 2), sample({3}, 3)};
  for (const Tensor& tensor : operands.list()) tensor.set_requires_grad(true);
  return operands;
}

// Forward and setup_context as one: transforms refuse a function of that form.
CustomFunction legacy_form(CustomFunction function) {
  function.forward = [forward = std::move(function.forward_alone),
                      setup = std::move(function.setup_context)](FunctionContext& context,
                                                                 const TensorList& inputs) {
    TensorList outputs = forward(inputs);
    setup(context, inputs, outputs);
    return outputs;
  };
  function.forward_alone = nullptr;
  function.setup_context = nullptr;
  function.generates_vmap_rule = false;
  return function;
}

// As stage 3 installs it; what is broken on purpose forgets the bias or its autocast state.
Tensor zero3_linear(Autograd& ag, const Operands& in, const Twin& twin) {
  if (twin.has_fault("the ordinary linear")) return linear(ag, in.x, in.weight, in.bias);
  const auto registry = std::make_shared<Zero3Registry>();
  CustomFunction function = zero3_linear_function(ag, registry, DeviceType::cpu);
  if (twin.has_fault("the legacy form")) function = legacy_form(std::move(function));
  const Tensor bias =
      twin.has_fault("a bias of zeros") ? Tensor::full({3}, 0.0, DType::float32) : in.bias;
  return apply_function(ag, function, {in.x, in.weight, bias}).at(0);
}

void require_same_gradients(const Operands& ours, const Operands& reference, double tolerance) {
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor a = ours.list()[i].grad();
    const Tensor b = reference.list()[i].grad();
    require(a.is_defined() && b.is_defined(), "operand " + std::to_string(i) + " has a gradient");
    require(a.dtype() == DType::float32, "in float32");
    require_equal({{"grad", {}, a.values()}}, {{"grad", {}, b.values()}}, {tolerance, 1e-5},
                  "gradient of operand " + std::to_string(i));
  }
}

void backward_of(Autograd& ag, const Tensor& y) {
  ag.backward(sum(ag, sq(ag, to(ag, y, DType::float32))));
}

// Ours against the ordinary function, both with autocast as it says around forward and backward.
void equals_reference(const Twin& twin, const Shape& sizes, bool in_forward, bool in_backward) {
  const CpuOps ops;
  Autograd ag(ops);
  const Operands ours = make_operands(sizes);
  const Operands reference = make_operands(sizes);
  const auto outputs = [&]() -> std::pair<Tensor, Tensor> {
    std::optional<Autocast> region;
    if (in_forward) region.emplace(ag, DeviceType::cpu);
    return {zero3_linear(ag, ours, twin),
            linear(ag, reference.x, reference.weight, reference.bias)};
  }();
  const DType expected = in_forward ? DType::bfloat16 : DType::float32;
  require(outputs.first.dtype() == expected, "the output's dtype");
  require_equal({{"y", {}, outputs.first.values()}}, {{"y", {}, outputs.second.values()}},
                {in_forward ? 1e-2 : 1e-6, 1e-5}, "output");
  {
    std::optional<Autocast> region;
    if (in_backward) region.emplace(ag, DeviceType::cpu);
    backward_of(ag, outputs.first);
  }
  backward_of(ag, outputs.second);
  require_same_gradients(ours, reference, in_forward ? 2e-2 : 1e-6);
}

}  // namespace

PEER_ROW(TestZeroLinearAutocast, test_unbatched_backward_matches_reference) {
  equals_reference(twin, {4}, false, false);
}

PEER_ROW(TestZeroLinearAutocast, test_backward_without_autocast) {
  equals_reference(twin, {2, 4}, false, false);
  equals_reference(twin, {2, 3, 4}, false, false);
}

PEER_ROW(TestZeroLinearAutocast, test_backward_with_autocast) {
  equals_reference(twin, {2, 4}, true, false);
}

// A region around the backward alone changes no bit of the gradients.
PEER_ROW(TestZeroLinearAutocast, test_no_autocast_leak_into_backward) {
  equals_reference(twin, {2, 4}, false, true);
  const CpuOps ops;
  Autograd ag(ops);
  const Operands with = make_operands({2, 4});
  const Operands without = make_operands({2, 4});
  const Tensor y = zero3_linear(ag, with, twin);
  backward_of(ag, zero3_linear(ag, without, twin));
  {
    const Autocast region(ag, DeviceType::cpu);
    backward_of(ag, y);
  }
  require_same_gradients(with, without, 0.0);
}

PEER_ROW(TestZeroFunctorchLinearRegression, test_grad_and_value_over_patched_functional_linear) {
  const CpuOps ops;
  Autograd ag(ops);
  const Operands operands = make_operands({2, 4});
  std::string node;
  const auto value = [&](const TensorList& args) -> TensorList {
    const Tensor y = zero3_linear(ag, {args.at(0), args.at(1), operands.bias}, twin);
    node = y.grad_fn() ? std::string(y.grad_fn()->name()) : "";
    return {sum(ag, sq(ag, y))};
  };
  const auto both =
      func::grad_and_value(ag, value, {operands.x, operands.weight}, {.argnums = {0, 1}});
  require(both.grads.size() == 2 && both.value.item() > 0.0, "a value and both gradients");
  require(node.find("Linear") != std::string::npos, "made by the function: " + node);
  const Tensor y = linear(ag, operands.x, operands.weight, operands.bias);
  ag.backward(sum(ag, sq(ag, y)));
  require_equal({{"x", {}, both.grads[0].values()}}, {{"x", {}, operands.x.grad().values()}},
                {1e-6, 1e-6}, "gradient of x");
  require_equal({{"w", {}, both.grads[1].values()}}, {{"w", {}, operands.weight.grad().values()}},
                {1e-6, 1e-6}, "gradient of the weight");
}

PEER_ROW(TestLinearFunctionVmap, test_vmap_over_linear_function) {
  const CpuOps ops;
  Autograd ag(ops);
  const Operands operands = make_operands({2, 4});
  const auto mapped = func::vmap(ag, [&](const TensorList& args) -> TensorList {
    return {zero3_linear(ag, {args.at(0), operands.weight, operands.bias}, twin)};
  })({sample({5, 4}, 9)});
  const Tensor expected = linear(ag, sample({5, 4}, 9), operands.weight, operands.bias);
  require_equal({{"y", {}, mapped.at(0).values()}}, {{"y", {}, expected.values()}}, {0.0, 1e-5},
                "vmap");
}

}  // namespace zeroproof::peer
