#include "tests/model/transform_cases.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeroproof::testing {

namespace {

using A = Autograd;
using L = TensorList;

std::vector<TransformCase> element_cases() {
  return {
      {"add", {{2, 3}, {3}}, [](A& ag, const L& x) { return L{add(ag, x[0], x[1])}; }},
      {"add_scalar_left", {{}, {2, 2}}, [](A& ag, const L& x) { return L{add(ag, x[0], x[1])}; }},
      {"add_number", {{3}}, [](A& ag, const L& x) { return L{add(ag, x[0], 1.5)}; }},
      {"sub", {{2, 2}, {2, 1}}, [](A& ag, const L& x) { return L{sub(ag, x[0], x[1])}; }},
      {"mul", {{3}, {2, 3}}, [](A& ag, const L& x) { return L{mul(ag, x[0], x[1])}; }},
      {"mul_number", {{3}}, [](A& ag, const L& x) { return L{mul(ag, x[0], -0.5)}; }},
      {"div", {{2, 2}, {2}}, [](A& ag, const L& x) { return L{div(ag, x[0], x[1])}; }},
      {"neg", {{3}}, [](A& ag, const L& x) { return L{neg(ag, x[0])}; }},
      {"pow", {{3}}, [](A& ag, const L& x) { return L{pow(ag, x[0], 3.0)}; }},
      {"pow_0", {{2}}, [](A& ag, const L& x) { return L{pow(ag, x[0], 0.0)}; }},
      {"abs", {{3}}, [](A& ag, const L& x) { return L{abs(ag, neg(ag, x[0]))}; }},
      {"sqrt", {{3}}, [](A& ag, const L& x) { return L{sqrt(ag, x[0])}; }},
      {"exp", {{3}}, [](A& ag, const L& x) { return L{exp(ag, x[0])}; }},
      {"log", {{3}}, [](A& ag, const L& x) { return L{log(ag, x[0])}; }},
      {"tanh", {{3}}, [](A& ag, const L& x) { return L{tanh(ag, x[0])}; }},
      {"relu", {{4}}, [](A& ag, const L& x) { return L{relu(ag, add(ag, x[0], -0.65))}; }},
      {"sin", {{3}}, [](A& ag, const L& x) { return L{sin(ag, x[0])}; }},
      {"cos", {{}}, [](A& ag, const L& x) { return L{cos(ag, x[0])}; }},
      {"clone", {{3}}, [](A& ag, const L& x) { return L{clone(ag, x[0])}; }},
  };
}

std::vector<TransformCase> sum_and_product_cases() {
  return {
      {"sum", {{2, 2}}, [](A& ag, const L& x) { return L{sum(ag, x[0])}; }},
      {"sum_of_scalar", {{}}, [](A& ag, const L& x) { return L{sum(ag, x[0])}; }},
      {"sum_dims",
       {{2, 2, 2}},
       [](A& ag, const L& x) {
         return L{sum(ag, x[0], {0, 2}, KeepDim::no)};
       }},
      {"sum_dims_kept",
       {{2, 3}},
       [](A& ag, const L& x) { return L{sum(ag, x[0], {1}, KeepDim::yes)}; }},
      {"sum_to",
       {{2, 3}},
       [](A& ag, const L& x) {
         return L{sum_to(ag, x[0], {3}), sum_to(ag, x[0], {2, 1})};
       }},
      {"expand",
       {{3}, {2, 1}},
       [](A& ag, const L& x) {
         return L{expand(ag, x[0], {2, 3}), expand(ag, x[1], {2, 2})};
       }},
      {"sq", {{3}}, [](A& ag, const L& x) { return L{sq(ag, x[0])}; }},
      {"mm", {{2, 3}, {3, 2}}, [](A& ag, const L& x) { return L{mm(ag, x[0], x[1])}; }},
      {"mm_transposed",
       {{3, 2}, {2, 3}},
       [](A& ag, const L& x) { return L{mm(ag, t(ag, x[0]), t(ag, x[1]))}; }},
      {"addmm",
       {{2}, {2, 3}, {3, 2}},
       [](A& ag, const L& x) { return L{addmm(ag, x[0], x[1], x[2])}; }},
      {"addmm_matrix",
       {{2, 2}, {2, 1}, {1, 2}},
       [](A& ag, const L& x) { return L{addmm(ag, x[0], x[1], x[2])}; }},
      {"addmm_scalar",
       {{}, {1, 2}, {2, 2}},
       [](A& ag, const L& x) { return L{addmm(ag, x[0], x[1], x[2])}; }},
      {"bmm", {{2, 1, 2}, {2, 2, 1}}, [](A& ag, const L& x) { return L{bmm(ag, x[0], x[1])}; }},
      {"matmul_vector", {{2}, {2, 3}}, [](A& ag, const L& x) { return L{matmul(ag, x[0], x[1])}; }},
      {"matmul_rows",
       {{2, 1, 2}, {2, 2}},
       [](A& ag, const L& x) { return L{matmul(ag, x[0], x[1])}; }},
  };
}

std::vector<TransformCase> shape_cases() {
  return {
      {"t", {{2, 3}}, [](A& ag, const L& x) { return L{t(ag, x[0])}; }},
      {"t_of_vector", {{3}}, [](A& ag, const L& x) { return L{t(ag, x[0])}; }},
      {"transpose", {{1, 2, 3}}, [](A& ag, const L& x) { return L{transpose(ag, x[0], 0, 2)}; }},
      {"movedim", {{2, 1, 3}}, [](A& ag, const L& x) { return L{movedim(ag, x[0], 2, 0)}; }},
      {"view",
       {{2, 3}},
       [](A& ag, const L& x) {
         return L{view(ag, x[0], {3, 2})};
       }},
      {"unsafe_view",
       {{2, 3}},
       [](A& ag, const L& x) {
         return L{unsafe_view(ag, x[0], {3, 2})};
       }},
      {"reshape", {{2, 3}}, [](A& ag, const L& x) { return L{reshape(ag, t(ag, x[0]), {6})}; }},
      {"unsqueeze", {{2}}, [](A& ag, const L& x) { return L{unsqueeze(ag, x[0], 1)}; }},
      {"squeeze", {{2, 1}}, [](A& ag, const L& x) { return L{squeeze(ag, x[0], 1)}; }},
      {"narrow",
       {{2, 4}},
       [](A& ag, const L& x) {
         return L{narrow(ag, x[0], 1, {1, 2})};
       }},
      {"cat",
       {{2}, {3}},
       [](A& ag, const L& x) {
         return L{cat(ag, {x[0], x[1], x[0]})};
       }},
      {"chunk", {{2, 3}}, [](A& ag, const L& x) { return chunk(ag, x[0], 2, 1); }},
      {"unbind", {{3, 2}}, [](A& ag, const L& x) { return unbind(ag, x[0], 1); }},
      {"unbind_one", {{2, 2}}, [](A& ag, const L& x) { return L{unbind(ag, x[0], 0)[1]}; }},
      {"stack",
       {{3}, {3}},
       [](A& ag, const L& x) {
         return L{stack(ag, {x[0], x[1]}, 1)};
       }},
      {"linear",
       {{2, 1, 3}, {2, 3}, {2}},
       [](A& ag, const L& x) { return L{linear(ag, x[0], x[1], x[2])}; }},
      {"linear_vector",
       {{3}, {2, 3}},
       [](A& ag, const L& x) { return L{linear(ag, x[0], x[1], {})}; }},
      {"mul_in_place",
       {{3}},
       [](A& ag, const L& x) {
         Tensor y = sin(ag, x[0]);
         const Tensor before = mul(ag, y, 1.0);
         mul_in_place(ag, y, 3.0);
         return L{y, before};
       }},
  };
}

std::vector<TransformCase> gather() {
  std::vector<TransformCase> cases = element_cases();
  for (const auto& group : {sum_and_product_cases(), shape_cases()})
    cases.insert(cases.end(), group.begin(), group.end());
  return cases;
}

}  // namespace

const std::vector<TransformCase>& transform_cases() {
  static const std::vector<TransformCase> kCases = gather();
  return kCases;
}

TensorList inputs_of(const TransformCase& op, double salt) {
  TensorList inputs;
  double value = 0.3 + salt;
  for (const Shape& sizes : op.sizes) {
    std::vector<double> values(static_cast<std::size_t>(numel(sizes)));
    for (double& element : values) element = (value += 0.137);
    inputs.push_back(Tensor::of(values, sizes));
  }
  return inputs;
}

func::Function function_of(Autograd& ag, const TransformCase& op) {
  return [&ag, &op](const TensorList& x) { return op.body(ag, x); };
}

func::Function loss_of(Autograd& ag, func::Function f) {
  return [&ag, f = std::move(f)](const TensorList& x) {
    Tensor total = Tensor::full({}, 0.0);
    double weight = 0.4;
    for (const Tensor& output : f(x)) {
      std::vector<double> weights(static_cast<std::size_t>(output.numel()));
      for (double& each : weights) each = (weight += 0.21);
      const Tensor factors = Tensor::of(weights, output.sizes());
      const Tensor curved = add(ag, output, mul(ag, mul(ag, output, output), 0.3));
      total = add(ag, total, sum(ag, mul(ag, curved, factors)));
    }
    return TensorList{total};
  };
}

std::vector<double> values_of(const TensorList& tensors) {
  std::vector<double> all;
  for (const Tensor& tensor : tensors) {
    const std::vector<double> values = tensor.values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

namespace {

std::vector<double> values_at(const func::Function& f, const TensorList& inputs,
                              const TensorList& tangents, double step) {
  TensorList moved;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<double> values = inputs[i].values();
    const std::vector<double> direction = tangents[i].values();
    for (std::size_t e = 0; e < values.size(); ++e) values[e] += step * direction[e];
    moved.push_back(Tensor::of(values, inputs[i].sizes()));
  }
  return values_of(f(moved));
}

}  // namespace

// Of order four, so that the step may be large enough for values of which the last digits differ.
std::vector<double> central_differences(const func::Function& f, const TensorList& inputs,
                                        const TensorList& tangents) {
  constexpr double kStep = 1e-3;
  const auto far_above = values_at(f, inputs, tangents, 2 * kStep);
  const auto above = values_at(f, inputs, tangents, kStep);
  const auto below = values_at(f, inputs, tangents, -kStep);
  const auto far_below = values_at(f, inputs, tangents, -2 * kStep);
  std::vector<double> slopes;
  for (std::size_t i = 0; i < above.size(); ++i)
    slopes.push_back((8 * (above[i] - below[i]) - (far_above[i] - far_below[i])) / (12 * kStep));
  return slopes;
}

TensorList unit_tangents(const TensorList& inputs, std::size_t input, std::size_t element) {
  TensorList tangents;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<double> values(static_cast<std::size_t>(inputs[i].numel()), 0.0);
    if (i == input) values.at(element) = 1.0;
    tangents.push_back(Tensor::of(values, inputs[i].sizes()));
  }
  return tangents;
}

std::string difference(const std::vector<double>& expected, const std::vector<double>& actual,
                       double tolerance) {
  if (expected.size() != actual.size())
    return std::to_string(expected.size()) + " values expected, not " +
           std::to_string(actual.size());
  double scale = 1.0;
  for (const double value : expected) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!(std::abs(expected[i] - actual[i]) <= tolerance * scale))
      return "value " + std::to_string(i) + ": " + std::to_string(expected[i]) + " expected, not " +
             std::to_string(actual[i]);
  return {};
}

}  // namespace zeroproof::testing
