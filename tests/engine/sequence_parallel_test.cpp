// Ranks that share a sequence have parts of one loss: their gradients add up, and only replicas of
// the whole sequence are averaged (docs/spec/zero.md 2.15; H18).
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

constexpr int kRanks = 4;
constexpr int kSequence = 2;

Tensor part_of(int rank) {
  return filled({2, 4}, 0.125 * rank);
}

struct Cell {
  int stage = 0;
  bool reduce_scatter = true;
  Quirks quirks = {};
};

std::vector<FullTensor> gradients(const Cell& cell) {
  std::vector<FullTensor> result;
  HostWorld world({.world_size = kRanks, .degrees = {.sequence = kSequence}});
  world.run([&](Runtime& runtime) {
    const CpuOps ops;
    Autograd ag(ops);
    MlpModel model;
    ZeroConfig config{.stage = cell.stage, .reduce_scatter = cell.reduce_scatter};
    config.stage3_param_persistence_threshold = 0;
    config.reduce_bucket_size = 30;
    auto engine = Engine::initialize(ag, model, config, runtime, {.quirks = cell.quirks}).value();
    engine->backward(engine->forward(part_of(runtime.rank())));
    auto values = engine->full_gradients();
    if (runtime.rank() == 0) result = std::move(values);
  });
  return result;
}

// One module, one autograd: the sum over all parts, divided by the number of replicas.
std::map<std::string, std::vector<double>> baseline() {
  const CpuOps ops;
  Autograd ag(ops);
  const MlpModel model;
  for (int rank = 0; rank < kRanks; ++rank) ag.backward(model(ag, part_of(rank)));
  std::map<std::string, std::vector<double>> sums;
  for (const nn::NamedParameter& parameter : model.named_parameters())
    for (const double value : parameter.tensor.grad().values())
      sums[parameter.name].push_back(value * kSequence / kRanks);
  return sums;
}

void expect_equal(const Cell& cell, double factor) {
  const auto expected = baseline();
  const auto actual = gradients(cell);
  ASSERT_EQ(expected.size(), actual.size());
  for (const FullTensor& gradient : actual)
    for (std::size_t i = 0; i < gradient.values.size(); ++i)
      EXPECT_NEAR(gradient.values[i], factor * expected.at(gradient.name).at(i), 1e-6)
          << gradient.name << " in stage " << cell.stage;
}

TEST(SequenceParallel, Gradients_are_averaged_over_replicas_and_summed_over_the_sequence) {
  for (const int stage : {0, 1, 2, 3})
    for (const bool reduce_scatter : {true, false})
      expect_equal({.stage = stage, .reduce_scatter = reduce_scatter}, 1.0);
}

TEST(SequenceParallel, H18_divides_by_all_ranks_on_the_path_of_reduce_scatter_alone) {
  Quirks quirks;
  quirks.add(Quirk::h18_no_sequence_correction);
  expect_equal({.stage = 3, .reduce_scatter = true, .quirks = quirks}, 1.0 / kSequence);
  expect_equal({.stage = 3, .reduce_scatter = false, .quirks = quirks}, 1.0);
}

}  // namespace
}  // namespace zeroproof
