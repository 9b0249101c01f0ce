#include "tests/peer/support/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace zeroproof::peer {

void require(bool is_true, const std::string& what) {
  if (!is_true) throw Failed(what);
}

void require_near(double a, double b, double tolerance, const std::string& what) {
  if (!(std::abs(a - b) <= tolerance)) throw Failed(fmt::format("{}: {} and {}", what, a, b));
}

void within(const std::string& label, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    throw Failed(label + ": " + error.what());
  }
}

Tolerance tolerance_of(DType dtype) {
  if (dtype == DType::bfloat16) return {1.6e-2, 1e-5};
  if (dtype == DType::float16) return {1e-3, 1e-5};
  return {1.3e-6, 1e-5};
}

namespace {

// What is there on either side, zeros for what is not.
struct Both {
  std::string name;
  std::vector<double> a;
  std::vector<double> b;
};

std::vector<Both> together(const FullTensors& a, const FullTensors& b) {
  std::map<std::string, Both> by_name;
  for (const FullTensor& tensor : a) by_name[tensor.name].a = tensor.values;
  for (const FullTensor& tensor : b) by_name[tensor.name].b = tensor.values;
  std::vector<Both> pairs;
  for (auto& [name, pair] : by_name) {
    pair.name = name;
    const std::size_t size = std::max(pair.a.size(), pair.b.size());
    pair.a.resize(size);
    pair.b.resize(size);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

double largest(const std::vector<double>& values) {
  double result = 0.0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace

void require_equal(const FullTensors& ours, const FullTensors& reference,
                   const Tolerance& tolerance, const std::string& what) {
  for (const Both& pair : together(ours, reference)) {
    const double allowed = tolerance.absolute + tolerance.relative * largest(pair.b);
    for (std::size_t i = 0; i < pair.a.size(); ++i)
      if (!(std::abs(pair.a[i] - pair.b[i]) <= allowed))
        throw Failed(fmt::format("{}: {}[{}] is {}, not {} (within {})", what, pair.name, i,
                                 pair.a[i], pair.b[i], allowed));
  }
}

void require_equal_parameters(const FullTensors& ours, const FullTensors& reference,
                              const Tolerance& tolerance, const std::string& what) {
  FullTensors known;
  for (const FullTensor& tensor : reference)
    for (const FullTensor& other : ours)
      if (other.name == tensor.name && !other.values.empty()) known.push_back(tensor);
  require(!known.empty(), what + ": nothing to compare");
  FullTensors theirs;
  for (const FullTensor& tensor : ours)
    if (!tensor.values.empty()) theirs.push_back(tensor);
  require_equal(theirs, known, tolerance, what);
}

double max_difference(const FullTensors& a, const FullTensors& b) {
  double result = 0.0;
  for (const Both& pair : together(a, b))
    for (std::size_t i = 0; i < pair.a.size(); ++i) {
      const double difference = std::abs(pair.a[i] - pair.b[i]);
      if (!(difference <= result)) result = difference;
    }
  return result;
}

bool has_values(const FullTensors& tensors) {
  return std::ranges::any_of(tensors,
                             [](const FullTensor& tensor) { return largest(tensor.values) > 0; });
}

const FullTensor& find(const FullTensors& tensors, const std::string& name) {
  for (const FullTensor& tensor : tensors)
    if (tensor.name == name) return tensor;
  throw Failed("there is no tensor " + name);
}

}  // namespace zeroproof::peer
