#include "props/conform/conform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "props/conform/program.h"
#include "props/conform/recording.h"
#include "sim/schedulers/exhaustive.h"

namespace zeroproof {
namespace {

constexpr double kComparedFloat32Tolerance = 1e-5;
constexpr std::size_t kOrdersMax = 4096;
constexpr std::array<std::string_view, 2> kStartingRoles = {"param", "input"};

using DumpDifference = std::optional<std::string>;

DumpDifference first_other_entry(std::string_view what, const std::vector<std::string>& recorded,
                                 const std::vector<std::string>& ours) {
  const std::size_t count = std::max(recorded.size(), ours.size());
  const auto word = [](const std::vector<std::string>& words, std::size_t i) {
    return i < words.size() ? words[i] : std::string("the end");
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (word(recorded, i) == word(ours, i)) continue;
    return fmt::format("{} {}: recorded {}, ours {}", what, i, word(recorded, i), word(ours, i));
  }
  return std::nullopt;
}

// Equal NaN and equal infinities do not differ.
double deviation(const std::vector<double>& recorded, const std::vector<double>& ours) {
  double scale = 1.0;
  for (const double value : recorded)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  double worst = 0.0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const bool is_equal =
        recorded[i] == ours[i] || (std::isnan(recorded[i]) && std::isnan(ours[i]));
    const double distance = is_equal ? 0.0 : std::abs(recorded[i] - ours[i]) / scale;
    worst = std::isnan(distance) ? INFINITY : std::max(worst, distance);
  }
  return worst;
}

class Comparison {
 public:
  Comparison(const Recording& recorded, const Recording& ours, const ConformOptions& options)
      : recorded_(recorded), ours_(ours), options_(options) {}

  void run(ConformOutcome& outcome) {
    outcome.tokens = recorded_.tokens.size();
    outcome.status = ConformStatus::agreed;
    if (const auto order = order_difference()) {
      outcome.status = ConformStatus::order_mismatch;
      outcome.detail = *order;
    } else if (const auto values = value_difference(outcome)) {
      outcome.status = ConformStatus::value_mismatch;
      outcome.detail = *values;
    }
  }

 private:
  DumpDifference order_difference() const {
    if (auto tokens = first_other_entry("token", recorded_.tokens, ours_.tokens)) return tokens;
    if (recorded_.executed_nodes.empty()) return std::nullopt;
    return first_other_entry("node", recorded_.executed_nodes, ours_.executed_nodes);
  }

  DumpDifference value_difference(ConformOutcome& outcome) const {
    for (const auto& [key, tensor] : recorded_.tensors) {
      if (std::count(kStartingRoles.begin(), kStartingRoles.end(), key.first) != 0) continue;
      ++outcome.tensors;
      const auto at = ours_.tensors.find(key);
      if (at == ours_.tensors.end())
        return fmt::format("{} {}: recorded, but not ours", key.first, key.second);
      if (auto difference = tensor_difference(tensor, at->second, outcome)) return difference;
    }
    for (const auto& [key, tensor] : ours_.tensors)
      if (!recorded_.tensors.contains(key))
        return fmt::format("{} {}: ours, but not recorded", key.first, key.second);
    return std::nullopt;
  }

  DumpDifference tensor_difference(const TensorRecord& recorded, const TensorRecord& ours,
                                   ConformOutcome& outcome) const {
    if (!recorded.values && !ours.values) return std::nullopt;
    const auto name = [&] { return fmt::format("{} {}", recorded.role, recorded.name); };
    if (!recorded.values || !ours.values)
      return fmt::format("{}: {}", name(), ours.values ? "recorded none" : "ours is none");
    if (recorded.shape != ours.shape) return fmt::format("{}: another shape", name());
    const double worst = deviation(*recorded.values, *ours.values);
    outcome.worst = std::max(outcome.worst, worst);
    const double allowed = tolerance_of(recorded);
    if (worst <= allowed) return std::nullopt;
    return fmt::format("{}: off by {:.3g}, allowed {:.3g}", name(), worst, allowed);
  }

  // A program that computed in float32 itself is held to what float32 can hold.
  double tolerance_of(const TensorRecord& recorded) const {
    const bool is_double = recorded.dtype == dtype_name(DType::float64);
    return is_double ? options_.tolerance : std::max(options_.tolerance, kComparedFloat32Tolerance);
  }

  const Recording& recorded_;
  const Recording& ours_;
  const ConformOptions& options_;
};

// Counts what a program left to the scheduler.
class CountingChooser final : public Chooser {
 public:
  explicit CountingChooser(Chooser& inner) : inner_(inner) {}
  std::size_t choose(const ChoicePoint& at) override {
    ++count;
    return inner_.choose(at);
  }
  std::size_t count = 0;

 private:
  Chooser& inner_;
};

Recording run_program(const ConformProgram& program, const Recording& recorded, DType dtype,
                      Chooser& chooser) {
  ProgramRun run(recorded, dtype);
  run.autograd().set_scheduling(chooser);
  program.run(run);
  return run.finish();
}

// Where several threads race (rule Q6), PyTorch's order is any one of those that the rules allow:
// they are tried in turn until one is what was recorded.
void compare(const ConformProgram& program, const Recording& recorded,
             const ConformOptions& options, ConformOutcome& outcome) {
  ExhaustiveScheduler orders(Pruning::off);
  ConformOutcome first;
  for (outcome.orders_tried = 0; outcome.orders_tried < kOrdersMax; ++outcome.orders_tried) {
    if (!orders.new_execution()) break;
    CountingChooser chooser(orders);
    const Recording ours = run_program(program, recorded, options.dtype, chooser);
    orders.end_execution({});
    outcome.is_race = chooser.count > 0;
    ConformOutcome tried = outcome;
    Comparison(recorded, ours, options).run(tried);
    if (outcome.orders_tried == 0) first = tried;
    if (tried.status != ConformStatus::order_mismatch) {
      outcome = tried;
      ++outcome.orders_tried;
      return;
    }
  }
  const std::size_t tried = outcome.orders_tried;
  outcome = first;
  outcome.orders_tried = tried;
}

}  // namespace

std::string_view conform_status_name(ConformStatus status) {
  constexpr std::array<std::string_view, 7> kNames = {
      "agreed",    "order_mismatch", "collective_mismatch", "value_mismatch",
      "explained", "unknown",        "incomplete"};
  return kNames[static_cast<std::size_t>(status)];
}

std::size_t ConformReport::count(ConformStatus status) const {
  const auto has_status = [&](const ConformOutcome& outcome) { return outcome.status == status; };
  return static_cast<std::size_t>(std::count_if(outcomes.begin(), outcomes.end(), has_status));
}

ConformOutcome conform(const Recording& recorded, const std::string& path,
                       const ConformOptions& options) {
  ConformOutcome outcome{.path = path, .program = recorded.header.program};
  const ConformProgram* program = find_program(outcome.program);
  if (!program) {
    outcome.detail = "not ported";
    return outcome;
  }
  try {
    compare(*program, recorded, options, outcome);
  } catch (const MissingTensor&) {
    throw;
  } catch (const std::runtime_error& error) {
    outcome.status = ConformStatus::order_mismatch;
    outcome.detail = fmt::format("our program failed: {}", error.what());
  }
  return outcome;
}

Result<ConformOutcome> conform(const std::string& path, const ConformOptions& options) {
  const auto recorded = read_recording(path);
  if (!recorded) return tl::unexpected(recorded.error());
  try {
    return conform(*recorded, path, options);
  } catch (const MissingTensor& missing) {
    return fail(ErrorCode::unreadable, fmt::format("{}: {}", path, missing.what()));
  }
}

}  // namespace zeroproof
