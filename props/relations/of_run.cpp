// Relations whose other program runs on other ranks or other data.
#include "props/interpreter/program_count.h"
#include "props/relations/relation_table.h"
#include "props/relations/rewrite.h"

namespace zeroproof::relations {
namespace {

using program::Body;
using program::Program;
using program::Resume;
using program::SetLearningRate;
using program::Statement;

constexpr double kFactor = 64.0;
constexpr int kExponent = 6;
constexpr int kMostRanks = 4;

int reversed(int rank, int ranks) {
  return ranks - 1 - rank;
}

int of_half(int rank, int ranks) {
  return rank % (ranks / 2);
}

// Whether the weights stay where gradients and one number of the optimizer are scaled alike.
bool is_linear(const Program& program) {
  const ZeroConfig& config = program.config;
  const optim::AdamOptions& adam = config.optimizer.adam;
  const bool is_sgd = config.optimizer.type == OptimizerType::sgd;
  const bool decays = is_sgd ? config.optimizer.sgd.weight_decay != 0.0
                             : adam.weight_decay != 0.0 && !adam.is_decay_decoupled;
  return !decays && config.gradient_clipping == 0.0 && !(is_sgd && config.scheduler) &&
         can_scale(program);
}

}  // namespace

std::optional<Other> with_permuted_ranks(const Program& program) {
  if (program.world.ranks < 2 || program.world.ranks_differ || changes_weights(program) ||
      !program.data.is_exact())
    return std::nullopt;
  return Other{program, {.role = reversed}};
}

std::optional<Other> with_scaled_loss(const Program& program) {
  if (!is_linear(program)) return std::nullopt;
  Other other{program, {.exponent = kExponent}};
  OptimizerConfig& optimizer = other.program.config.optimizer;
  if (optimizer.type != OptimizerType::sgd) {
    optimizer.adam.eps *= kFactor;
    return other;
  }
  optimizer.sgd.lr /= kFactor;
  other.program.body = rewritten(program.body, [](Statement statement) {
    if (auto* const set = std::get_if<SetLearningRate>(&statement.kind))
      set->learning_rate /= kFactor;
    return Body{std::move(statement)};
  });
  return other;
}

std::optional<Other> once_more(const Program& program) {
  return Other{program};
}

std::optional<Other> on_twice_the_ranks(const Program& program) {
  const program::World& world = program.world;
  if (2 * world.size() > kMostRanks || world.sequence > 1 || world.ranks_differ ||
      program.config.gradient_allreduce_op == GradientAllreduceOp::sum ||
      !has_exact_float32(program) || changes_weights(program) || program::has<Resume>(program.body))
    return std::nullopt;
  Other other{program, {.role = of_half}};
  other.program.world.ranks *= 2;
  return other;
}

}  // namespace zeroproof::relations
