#include "props/train/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace zeroproof::train {
namespace {

constexpr std::int64_t kIncomparable = std::numeric_limits<std::int64_t>::max();

struct Format {
  int significand_bits;
  int min_exponent;  // of the smallest normal number
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return {53, -1022};
    case DType::float32:
      return {24, -126};
    case DType::bfloat16:
      return {8, -126};
    case DType::float16:
      break;
  }
  return {11, -14};
}

// The distance of neighbours around a magnitude.
double spacing(DType dtype, double magnitude) {
  const Format format = format_of(dtype);
  const int exponent =
      magnitude == 0.0 ? format.min_exponent : std::max(std::ilogb(magnitude), format.min_exponent);
  return std::ldexp(1.0, exponent - format.significand_bits + 1);
}

bool is_same_value(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

double largest(const FullTensor& tensor) {
  double most = 0.0;
  for (const double value : tensor.values)
    if (std::isfinite(value)) most = std::max(most, std::abs(value));
  return most;
}

// Which tensors, of which step. Names are put together where something differs only.
struct ComparedPlace {
  std::size_t step;
  std::string_view what;

  std::string name_of(const FullTensor& tensor) const {
    return fmt::format("step {} {} {}", step, what, tensor.name);
  }
};

// Where `tensors` have one of that name; most often at the place that it has on the other side.
const FullTensor* find(const std::vector<FullTensor>& tensors, const std::string& name,
                       std::size_t likely) {
  if (likely < tensors.size() && tensors[likely].name == name) return &tensors[likely];
  const auto at = std::ranges::find(tensors, name, &FullTensor::name);
  return at == tensors.end() ? nullptr : &*at;
}

class Comparer {
 public:
  explicit Comparer(const TrainCell& cell) : cell_(cell) {}

  void compare(const ComparedPlace& place, DType dtype, const std::vector<FullTensor>& engine,
               const std::vector<FullTensor>& baseline) {
    for (std::size_t i = 0; i < baseline.size(); ++i) {
      const FullTensor& expected = baseline[i];
      const FullTensor* const given = find(engine, expected.name, i);
      if (!given || given->values.size() != expected.values.size()) {
        add({.name = place.name_of(expected), .ulps = kIncomparable}, false);
      } else {
        compare_values(place, dtype, *given, expected);
      }
    }
    for (std::size_t i = 0; i < engine.size(); ++i) {
      if (engine[i].values.empty()) continue;  // of a parameter that is not trained
      if (!find(baseline, engine[i].name, i))
        add({.name = place.name_of(engine[i]), .ulps = kIncomparable}, false);
    }
  }

  Comparison result() const { return result_; }

 private:
  void compare_values(const ComparedPlace& place, DType dtype, const FullTensor& engine,
                      const FullTensor& baseline) {
    result_.values += static_cast<std::int64_t>(engine.values.size());
    if (std::ranges::equal(engine.values, baseline.values, is_same_value)) return;
    const std::string name = place.name_of(baseline);
    const double bound = kBoundUlps * spacing(wire_dtype(cell_.precision), largest(baseline));
    for (std::size_t i = 0; i < engine.values.size(); ++i) {
      const double a = engine.values[i];
      const double b = baseline.values[i];
      if (is_same_value(a, b)) continue;
      const bool is_within = cell_.data == DataMode::real && std::abs(a - b) <= bound;
      add({.name = name,
           .index = static_cast<std::int64_t>(i),
           .engine = a,
           .baseline = b,
           .ulps = ulps_between(dtype, a, b)},
          is_within);
    }
  }

  void add(const Difference& difference, bool is_within) {
    if (!is_within) result_.is_equal = false;
    if (!result_.first) result_.first = difference;
    if (!result_.worst || difference.ulps > result_.worst->ulps) result_.worst = difference;
  }

  const TrainCell& cell_;
  Comparison result_;
};

std::vector<FullTensor> facts_of(const std::vector<StepOutcome>& outcomes) {
  std::vector<FullTensor> facts;
  for (const StepOutcome& outcome : outcomes)
    facts.push_back({fmt::format("applied {}", facts.size()),
                     {},
                     {outcome.is_applied ? 1.0 : 0.0, outcome.has_overflow ? 1.0 : 0.0}});
  return facts;
}

}  // namespace

std::int64_t ulps_between(DType dtype, double a, double b) {
  if (is_same_value(a, b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return kIncomparable;
  const double unit = spacing(dtype, std::max(std::abs(a), std::abs(b)));
  const double distance = std::ceil(std::abs(a - b) / unit);
  return distance < 9e18 ? static_cast<std::int64_t>(distance) : kIncomparable;
}

Comparison compare(const std::vector<WindowValues>& engine,
                   const std::vector<WindowValues>& baseline, const TrainCell& cell,
                   Compared compared) {
  Comparer comparer(cell);
  const DType wire = wire_dtype(cell.precision);
  const DType model = model_dtype(cell.precision);
  const WindowValues none;
  for (std::size_t step = 0; step < std::max(engine.size(), baseline.size()); ++step) {
    const WindowValues& a = step < engine.size() ? engine[step] : none;
    const WindowValues& b = step < baseline.size() ? baseline[step] : none;
    comparer.compare({step, "outcome"}, DType::float64, facts_of(a.outcomes), facts_of(b.outcomes));
    comparer.compare({step, "gradient"}, wire, a.gradients, b.gradients);
    comparer.compare({step, "parameter"}, DType::float32, a.parameters, b.parameters);
    comparer.compare({step, "weight"}, model, a.weights, b.weights);
    comparer.compare({step, "state"}, DType::float32, a.states, b.states);
    if (!a.counters.empty() && !b.counters.empty())  // of runs without faults alone
      comparer.compare({step, "step"}, DType::float64, a.counters, b.counters);
    if (compared == Compared::everything)
      comparer.compare({step, "record"}, model, a.records, b.records);
  }
  return comparer.result();
}

std::vector<std::string> zero_gradients(const std::vector<WindowValues>& windows) {
  std::vector<std::string> zero;
  if (windows.empty()) return zero;
  for (const FullTensor& first : windows.front().gradients) {
    const auto is_zero = [&](const WindowValues& window) {
      const auto at = std::ranges::find(window.gradients, first.name, &FullTensor::name);
      return at == window.gradients.end() ||
             std::ranges::all_of(at->values, [](double value) { return value == 0.0; });
    };
    if (!first.values.empty() && std::ranges::all_of(windows, is_zero)) zero.push_back(first.name);
  }
  return zero;
}

}  // namespace zeroproof::train
