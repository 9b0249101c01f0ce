// Programs about custom Functions that see more of their gradients: the buffers that these go to
// and the dtype that they come in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "model/custom_function.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

// The sum of inputs times 2, 3, …; its backward adds into what a slot has, where it may.
class FusedScale {
 public:
  FusedScale(ProgramRun& c, std::string label) : c_(c), label_(std::move(label)) {}

  CustomFunction function() const {
    return {.name = "FusedScaleBackward",
            .forward = [self = *this](FunctionContext&,
                                      const TensorList& inputs) { return self.forward(inputs); },
            .backward = [self = *this](
                            FunctionContext& ctx,
                            const TensorList& grads) { return self.backward(ctx, grads[0]); }};
  }

 private:
  TensorList forward(const TensorList& inputs) const {
    Autograd& ag = c_.autograd();
    Tensor total = mul(ag, inputs[0], 2.0);
    for (std::size_t i = 1; i < inputs.size(); ++i)
      total = add(ag, total, mul(ag, inputs[i], static_cast<double>(i) + 2.0));
    return {total};
  }

  TensorList backward(FunctionContext& ctx, const Tensor& grad) const {
    Autograd& ag = c_.autograd();
    TensorList buffers = ctx.input_grad_buffers();
    mark(buffers);
    TensorList grads;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      grads.push_back(mul(ag, grad, static_cast<double>(i) + 2.0));
      if (!buffers[i].is_defined()) continue;
      c_.dump("output", fmt::format("{}.buffer{}", label_, i), buffers[i]);
      ag.ops().add_in_place(buffers[i], grads[i]);
      grads[i] = Tensor();
    }
    return grads;
  }

  void mark(const TensorList& buffers) const {
    std::vector<std::string_view> words;
    for (const Tensor& buffer : buffers)
      words.emplace_back(buffer.is_defined() ? "buffer" : "none");
    c_.mark(fmt::format("{}:{}", label_, fmt::join(words, ",")));
  }

  ProgramRun& c_;
  std::string label_;
};

Tensor fused(ProgramRun& c, const std::string& label, const TensorList& inputs) {
  return apply_function(c.autograd(), FusedScale(c, label).function(), inputs)[0];
}

// One use of h beside the Function, made after it: in backward it comes first.
Tensor with_later_use(ProgramRun& c, const Tensor& scaled, const Tensor& h, double factor) {
  Autograd& ag = c.autograd();
  const Tensor other = mul(ag, h, factor);
  return add(ag, scaled, other);
}

void input_grad_buffers(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor y = c.leaf_input("y");
  ag.backward(sum(ag, with_later_use(c, fused(c, "leaf", {x}), x, 5.0)));
  Tensor h = tanh(ag, x);
  c.hook(h, "h");
  c.prehook(h.grad_fn(), "h");
  ag.backward(sum(ag, with_later_use(c, fused(c, "after", {h, y}), h, 5.0)));
  h = tanh(ag, x);
  const Tensor other = mul(ag, h, 5.0);
  ag.backward(sum(ag, add(ag, fused(c, "before", {h}), other)));
  h = tanh(ag, x);
  Tensor total = with_later_use(c, fused(c, "third", {h}), h, 3.0);
  ag.backward(sum(ag, with_later_use(c, total, h, 7.0)));
  h = tanh(ag, x);
  total = with_later_use(c, fused(c, "grad", {h, y}), h, 3.0);
  const Tensor loss = sum(ag, with_later_use(c, total, y, 4.0));
  c.dump("output", "grad", ag.grad({loss}, {h})[0]);
}

void input_grad_buffers_shared(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  Tensor h = tanh(ag, x);
  Tensor first = fused(c, "alias", {h});
  Tensor second = add(ag, h, 0.0);
  ag.backward(sum(ag, mul(ag, add(ag, first, second), 2.0)));
  h = tanh(ag, x);
  first = sum(ag, fused(c, "expanded", {h}));
  second = sum(ag, h);
  ag.backward(add(ag, first, second));
  h = tanh(ag, x);
  ag.backward(sum(ag, with_later_use(c, fused(c, "twice", {h, h}), h, 3.0)));
  h = tanh(ag, x);
  first = fused(c, "first", {h});
  second = fused(c, "second", {h});
  ag.backward(sum(ag, with_later_use(c, add(ag, first, second), h, 3.0)));
}

// Looks at the buffer of its input, then runs a backward of its own.
Tensor nested_backward(ProgramRun& c, const Tensor& x) {
  Autograd& ag = c.autograd();
  const CustomFunction function = {
      .name = "NestedBackwardBackward",
      .forward = [&ag](FunctionContext&,
                       const TensorList& inputs) { return TensorList{mul(ag, inputs[0], 2.0)}; },
      .backward =
          [&c, &ag](FunctionContext& ctx, const TensorList& grads) {
            const Tensor buffer = ctx.input_grad_buffers()[0];
            c.mark(buffer.is_defined() ? "nested:buffer" : "nested:none");
            const Tensor leaf = Tensor::full({2}, 1.0, grads[0].dtype());
            leaf.set_requires_grad(true);
            Tensor loss;
            {
              const GradMode enabled(ag, true);
              loss = sum(ag, mul(ag, leaf, leaf));
            }
            ag.backward(loss);
            return TensorList{mul(ag, grads[0], 2.0)};
          }};
  return apply_function(ag, function, {x})[0];
}

void input_grad_buffers_refused(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  for (const bool creates_graph : {true, false}) {
    const Tensor h = tanh(ag, x);
    const Tensor scaled = fused(c, "refused", {h});
    const Tensor loss = sum(ag, with_later_use(c, scaled, h, 3.0));
    if (!creates_graph) c.posthook(scaled.grad_fn(), "fused");
    c.guarded([&] { ag.backward(loss, {.create_graph = creates_graph}); });
  }
  Tensor h = tanh(ag, x);
  const Tensor exposed = sum(ag, with_later_use(c, nested_backward(c, h), h, 3.0));
  c.guarded([&] { ag.backward(exposed); });
  h = tanh(ag, x);
  const Tensor other = mul(ag, h, 3.0);
  const Tensor alone = sum(ag, add(ag, nested_backward(c, h), other));
  c.guarded([&] { ag.backward(alone); });
}

using GradDtypes = std::vector<std::optional<DType>>;

// Copies its inputs and says in which dtypes the gradients of the copies came.
TensorList two_dtypes(ProgramRun& c, const std::optional<GradDtypes>& declared,
                      const TensorList& inputs) {
  Autograd& ag = c.autograd();
  const CustomFunction function = {
      .name = "TwoDtypesBackward",
      .forward =
          [&ag, declared](FunctionContext& ctx, const TensorList& given) {
            if (declared) ctx.set_output_grad_dtype(*declared);
            return TensorList{mul(ag, given[0], 1.0), mul(ag, given[1], 1.0)};
          },
      .backward =
          [&c, &ag](FunctionContext&, const TensorList& grads) {
            c.mark(fmt::format("grads:{},{}", dtype_name(grads[0].dtype()),
                               dtype_name(grads[1].dtype())));
            return TensorList{to(ag, grads[0], DType::bfloat16), to(ag, grads[1], DType::bfloat16)};
          }};
  return apply_function(ag, function, inputs);
}

// A copy whose gradient is float32 whatever its input was.
Tensor in_float32(Autograd& ag, const Tensor& x) {
  const CustomFunction function = {
      .name = "InFloat32Backward",
      .forward = [&ag](FunctionContext&,
                       const TensorList& given) { return TensorList{mul(ag, given[0], 1.0)}; },
      .backward =
          [&ag](FunctionContext&, const TensorList& grads) {
            return TensorList{mul(ag, to(ag, grads[0], DType::float32), 1.0009765625)};
          }};
  return apply_function(ag, function, {x})[0];
}

void output_grad_dtype(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor y = c.leaf_input("y");
  const GradDtypes declared = {DType::float32, std::nullopt};
  for (const std::optional<GradDtypes>& dtypes : {std::optional<GradDtypes>(), {declared}}) {
    const TensorList copies = two_dtypes(c, dtypes, {x, y});
    copies[0].register_hook([&c](const Tensor& grad) {
      c.mark(fmt::format("hook:{}", dtype_name(grad.dtype())));
      return Tensor();
    });
    const Tensor first = sum(ag, in_float32(ag, copies[0]));
    const Tensor second = sum(ag, in_float32(ag, copies[1]));
    ag.backward(add(ag, first, second));
  }
  for (const std::size_t place : {0U, 1U})
    ag.backward(sum(ag, two_dtypes(c, declared, {x, y})[place]));
  c.guarded([&] { two_dtypes(c, GradDtypes{DType::float32}, {x, y}); });
}

constexpr std::array kBufferPrograms = {
    ConformProgram{"P99_input_grad_buffers", input_grad_buffers},
    ConformProgram{"P100_input_grad_buffers_shared", input_grad_buffers_shared},
    ConformProgram{"P101_input_grad_buffers_refused", input_grad_buffers_refused},
    ConformProgram{"P108_output_grad_dtype", output_grad_dtype},
};

}  // namespace

std::span<const ConformProgram> buffer_programs() {
  return kBufferPrograms;
}

}  // namespace zeroproof
