#include "props/interpreter/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "model/baseline/exact_data.h"
#include "props/interpreter/program_count.h"

namespace zeroproof::program {
namespace {

constexpr double kNormTolerance = 1e-9;  // relative; sums of squares are exact, roots are not
constexpr double kRealUlps = 8.0;

// The distance of one to the next number.
double epsilon_of(DType dtype) {
  return std::ldexp(1.0, 1 - baseline::significand_bits(dtype));
}

bool is_same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

class Comparer {
 public:
  explicit Comparer(const Tolerance& tolerance) : tolerance_(tolerance) {}

  void compare(const Observation& engine, const Observation& reference) {
    if (reference.what == Observed::outcome) ++steps_;
    if (engine.values.size() != reference.values.size())
      return add(reference.what, fmt::format("{} has {} elements and not {}", reference.name,
                                             engine.values.size(), reference.values.size()));
    const double bound = bound_of(reference);
    for (std::size_t i = 0; i < engine.values.size(); ++i) {
      const double a = engine.values[i];
      const double b = reference.values[i];
      if (is_same(a, b) || std::abs(a - b) <= bound) continue;
      return add(reference.what, fmt::format("{}[{}] is {} and not {}", reference.name, i, a, b));
    }
  }

  void add(Observed what, std::string text) {
    const auto is_it = [&](const Difference& known) { return known.what == what; };
    if (std::ranges::none_of(found_, is_it)) found_.push_back({what, std::move(text)});
  }

  std::vector<Difference> take() { return std::move(found_); }

 private:
  double bound_of(const Observation& reference) const {
    double largest = 0.0;
    for (const double value : reference.values)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    if (tolerance_.is_real) return real_bound(reference.what, largest);
    return reference.what == Observed::norm ? kNormTolerance * largest : 0.0;
  }

  // Sums may cancel what they are made of, which is below one; an update may then go either way.
  // Each step adds what its gradients and its update are rounded by.
  double real_bound(Observed what, double largest) const {
    const bool is_compared = what == Observed::loss || what == Observed::gradients ||
                             what == Observed::refusal || what == Observed::outcome ||
                             what == Observed::counters;
    if (!is_compared && tolerance_.wire != DType::float32) return INFINITY;
    return (1 + steps_) * kRealUlps * epsilon_of(tolerance_.wire) * std::max(largest, 1.0);
  }

  Tolerance tolerance_;
  int steps_ = 0;
  std::vector<Difference> found_;
};

// What was seen under each name, in order: an engine lists its tensors in its own order.
class ByName {
 public:
  explicit ByName(const Observations& seen) {
    for (const Observation& one : seen) seen_[{one.what, one.name}].push_back(&one);
  }

  // The next one like it; null: there is none.
  const Observation* next(const Observation& like) {
    const auto at = seen_.find({like.what, like.name});
    if (at == seen_.end()) return nullptr;
    std::size_t& taken = taken_[at->first];
    return taken < at->second.size() ? at->second[taken++] : nullptr;
  }

 private:
  using Key = std::pair<Observed, std::string_view>;
  std::map<Key, std::vector<const Observation*>> seen_;
  std::map<Key, std::size_t> taken_;
};

}  // namespace

Tolerance tolerance_of(const Program& program) {
  const ZeroConfig& config = program.config;
  DType wire =
      config.torch_autocast.enabled ? config.torch_autocast.dtype : config.communication_dtype();
  visit_statements(program.body, [&](const Statement& statement) {
    const auto* const block = std::get_if<Block>(&statement.kind);
    const auto dtype = block ? autocast_dtype(*block, config) : std::nullopt;
    if (dtype && epsilon_of(*dtype) > epsilon_of(wire)) wire = *dtype;
  });
  return {.is_real = program.data.mode == Data::Mode::real, .wire = wire};
}

std::vector<Difference> differences(const Observations& engine, const Observations& reference,
                                    const Tolerance& tolerance) {
  Comparer comparer(tolerance);
  ByName seen(engine);
  for (const Observation& expected : reference) {
    const Observation* const at = seen.next(expected);
    if (expected.is_unspecified) continue;
    if (at)
      comparer.compare(*at, expected);
    else
      comparer.add(expected.what, fmt::format("{} was not seen", expected.name));
  }
  return comparer.take();
}

std::optional<std::string> difference_of_ranks(const std::vector<const Observations*>& ranks) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    ByName other(*ranks[rank]);
    for (const Observation& expected : *ranks.front()) {
      if (expected.what != Observed::update) continue;
      const Observation* const at = other.next(expected);
      if (!at) break;
      if (!std::ranges::equal(at->values, expected.values, is_same))
        return fmt::format("{} differs between rank 0 and rank {}", expected.name, rank);
    }
  }
  return std::nullopt;
}

}  // namespace zeroproof::program
