// Every function's value, derivatives and nodes, against central differences and real PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "model/cpu_ops.h"
#include "model/functions/activations.h"
#include "model/functions/attention.h"
#include "model/functions/indexing.h"
#include "model/functions/losses.h"
#include "model/functions/normalization.h"
#include "tests/model/function_cases.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using nlohmann::json;

const json& recorded() {
  static const json kData =
      json::parse(std::ifstream(ZP_SOURCE_DIR "/tests/model/data/functions.json"));
  return kData;
}

const FunctionCase& case_of(const json& record) {
  const auto at =
      std::ranges::find(function_cases(), record["name"].get<std::string>(), &FunctionCase::name);
  if (at == function_cases().end()) throw std::runtime_error("no case " + record["name"].dump());
  return *at;
}

TensorList recorded_inputs(const json& record, DType dtype = DType::float64) {
  TensorList inputs;
  for (const json& input : record["inputs"]) {
    inputs.push_back(Tensor::of(input["values"], input["sizes"], dtype));
    inputs.back().set_requires_grad(true);
  }
  return inputs;
}

void expect_near(const std::vector<double>& expected, const Tensor& actual, double tolerance,
                 const std::string& what) {
  const std::vector<double> values = actual.values();
  ASSERT_EQ(expected.size(), values.size()) << what;
  double scale = 1.0;
  for (const double value : expected) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(expected[i], values[i], tolerance * scale) << what << " element " << i;
}

// Names of the next functions of `node`, as the data file nests them; null for a leaf or no edge.
json node_names(const std::shared_ptr<Node>& node) {
  if (!node || node->name().find("AccumulateGrad") != std::string_view::npos) return nullptr;
  json names = json::array({std::string(node->name())});
  for (const Edge& edge : node->next_edges()) names.push_back(node_names(edge.node));
  return names;
}

TEST(FunctionGradients, Are_those_of_central_differences) {
  const CpuOps ops;
  for (const FunctionCase& function : function_cases()) {
    Autograd ag(ops);
    const TensorList inputs = inputs_of(function);
    const auto loss = [&] { return weighted_sum(ag, function.body(ag, inputs)); };
    expect_central_differences(ag, inputs, loss, ag.grad({loss()}, inputs), function.name);
  }
}

TEST(FunctionGradients, Have_themselves_the_derivative_of_central_differences) {
  const CpuOps ops;
  for (const FunctionCase& function : function_cases()) {
    Autograd ag(ops);
    const TensorList inputs = inputs_of(function);
    const auto penalty = [&] { return gradient_penalty(ag, function, inputs); };
    expect_central_differences(ag, inputs, penalty, ag.grad({penalty()}, inputs), function.name);
  }
}

// A function without a case of its own would not be checked above.
TEST(FunctionGradients, Are_checked_for_every_function_that_a_header_declares) {
  std::set<std::string> declared;
  const auto collect = [&](const std::filesystem::path& path) {
    std::ifstream file(path);
    const std::regex kDeclaration("^(Tensor|TensorList|Largest) (\\w+)\\(Autograd& ag.*");
    std::smatch match;
    for (std::string line; std::getline(file, line);)
      if (std::regex_match(line, match, kDeclaration)) declared.insert(match[2]);
  };
  collect(ZP_SOURCE_DIR "/include/zeroproof/model/functions.h");
  for (const char* name :
       {"activations", "attention", "indexing", "losses", "normalization", "scalars"})
    collect(std::string(ZP_SOURCE_DIR "/model/functions/") + name + ".h");
  EXPECT_GE(declared.size(), 60U);
  for (const std::string& name : declared)
    EXPECT_NE(function_cases().end(),
              std::ranges::find(function_cases(), name, &FunctionCase::name))
        << name << " has no case";
}

TEST(Functions, Have_the_values_and_gradients_of_PyTorch) {
  const CpuOps ops;
  for (const json& record : recorded()["cases"]) {
    const FunctionCase& function = case_of(record);
    Autograd ag(ops);
    const TensorList inputs = recorded_inputs(record);
    const Tensor out = function.body(ag, inputs);
    EXPECT_EQ(record["output"]["sizes"].get<Shape>(), out.sizes()) << function.name;
    expect_near(record["output"]["values"], out, 1e-12, function.name);
    const TensorList grads = ag.grad({weighted_sum(ag, out)}, inputs);
    const TensorList second = ag.grad({gradient_penalty(ag, function, inputs)}, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      expect_near(record["grads"][i], grads[i], 1e-12, function.name + " grad");
      expect_near(record["penalty_grads"][i], second[i], 1e-11, function.name + " penalty");
    }
  }
}

TEST(Functions, Make_the_nodes_of_PyTorch) {
  const CpuOps ops;
  for (const json& record : recorded()["cases"]) {
    if (record["nodes"].is_null()) continue;
    const FunctionCase& function = case_of(record);
    Autograd ag(ops);
    const Tensor out = function.body(ag, recorded_inputs(record));
    EXPECT_EQ(record["nodes"], node_names(out.grad_fn())) << function.name;
  }
}

// Kernels of the narrower types differ from ours in their intermediate results by some roundings.
TEST(Functions, Round_as_PyTorch_does_in_narrower_types) {
  const CpuOps ops;
  for (const json& record : recorded()["cases"]) {
    const FunctionCase& function = case_of(record);
    for (const auto& [name, expected] : record["narrow"].items()) {
      const DType dtype = *dtype_of(name);
      Autograd ag(ops);
      const Tensor out = function.body(ag, recorded_inputs(record, dtype));
      EXPECT_EQ(dtype, out.dtype()) << function.name;
      const double unit = dtype == DType::float32 ? 0x1p-23 : 0x1p-8;
      expect_near(expected, out, 4 * unit, function.name + " " + name);
    }
  }
}

TEST(DTypes, Round_to_the_values_of_PyTorch) {
  const json& data = recorded()["rounding"];
  for (const char* name : {"bfloat16", "float16"})
    for (std::size_t i = 0; i < data["values"].size(); ++i) {
      if (data[name][i].is_null()) continue;
      const double rounded = round_to(*dtype_of(name), data["values"][i]);
      EXPECT_EQ(data[name][i].get<double>(), rounded) << name << " " << data["values"][i];
    }
  for (std::size_t i = 0; i < data["wide"].size(); ++i)
    EXPECT_EQ(data["float32"][i].get<double>(), round_to(DType::float32, data["wide"][i]));
}

TEST(Functions, Refuse_shapes_and_indices_that_do_not_fit) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor x = Tensor::full({3, 4}, 1.0);
  const Tensor y = Tensor::full({2, 4}, 1.0);
  const auto refuses = [](const std::function<void()>& call) {
    EXPECT_THROW(call(), AutogradError);
  };
  refuses([&] { softmax(ag, x, 2); });
  refuses([&] { log_softmax(ag, x, -1); });
  refuses([&] { mean(ag, x, {4}, KeepDim::no); });
  refuses([&] { sum(ag, x, {2}, KeepDim::no); });
  refuses([&] { mse_loss(ag, x, y); });
  refuses([&] { l1_loss(ag, x, y); });
  refuses([&] { layer_norm(ag, x, {}, {}, {{3}}); });
  refuses([&] { layer_norm(ag, x, Tensor::full({3}, 1.0), {}, {{4}}); });
  refuses([&] { rms_norm(ag, x, {}, {{3}}); });
  refuses([&] { nll_loss(ag, x, {{0, 9, 0}}); });
  refuses([&] { nll_loss(ag, x, {{0, 1}}); });
  refuses([&] { cross_entropy(ag, Tensor::full({4}, 1.0), {{0}}); });
  refuses([&] { embedding(ag, x, {{3}, {1}}); });
  refuses([&] { index_select(ag, x, 0, {7}); });
  refuses([&] { index_select(ag, x, 2, {0}); });
  refuses([&] { index_add(ag, x, 0, {0}, x); });
  refuses([&] { gather(ag, x, 1, {{9}, {1, 1}}); });
  refuses([&] { gather(ag, x, 1, {{0}, {1}}); });
  refuses([&] { topk(ag, x, 9, 1); });
  refuses([&] { masked_fill(ag, x, {{true, true}, {2}}, 0.0); });
  refuses([&] { scaled_dot_product_attention(ag, {x, x, x}); });
}

}  // namespace
}  // namespace zeroproof
