#include "tests/sim/world/random_program.h"

#include <array>
#include <bit>
#include <vector>

#include "sim/schedulers/random.h"

namespace zeroproof {
namespace {

constexpr std::array<StreamRole, 3> kRoles = {StreamRole::compute, StreamRole::reduction,
                                              StreamRole::all_gather};

// Digits of the seed, one after the other.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) { history_.add(seed); }
  std::uint64_t below(std::uint64_t bound) {
    history_.add(bound);
    return history_.value().low % bound;
  }

 private:
  sim::History history_;
};

void run_rank(Runtime& runtime, std::uint64_t seed, std::vector<double>& read) {
  Draws draws(seed);
  Stream& compute = runtime.stream(StreamRole::compute);
  ProcessGroup& group = runtime.group(GroupKind::data);
  const Tensor data = runtime.memory().allocate(4, DType::float32);
  const Tensor copy = runtime.memory().allocate(4, DType::float32);
  runtime.kernels().fill(compute, Span::of(data), runtime.rank() + 1.0);
  runtime.kernels().fill(compute, Span::of(copy), 0.0);
  for (std::uint64_t i = 0, count = 1 + draws.below(4); i < count; ++i) {
    Stream& stream = runtime.stream(kRoles[draws.below(kRoles.size())]);
    if (draws.below(2) == 0) stream.wait(compute);
    const bool is_sum = draws.below(2) == 0;
    const Work work =
        group.all_reduce(stream, Span::of(data), is_sum ? ReduceOp::sum : ReduceOp::max);
    runtime.kernels().copy(stream, Span::of(copy), Span::of(data), 0.5);
    if (draws.below(2) == 0) group.wait(work, compute);
    if (draws.below(3) == 0) read.push_back(group.is_completed(work) ? 1.0 : 0.0);
    for (const double value : runtime.kernels().read(compute, Span::of(copy)))
      read.push_back(value);
  }
  for (const StreamRole role : kRoles) runtime.stream(role).synchronize();
  for (const double value : runtime.kernels().read(compute, Span::of(data))) read.push_back(value);
}

}  // namespace

Fingerprint random_execution(std::uint64_t seed) {
  RandomScheduler scheduler(seed);
  scheduler.new_execution();
  const int ranks = 2 + static_cast<int>(seed % 2);
  SimWorld world({.world_size = ranks, .preemption = Preemption::at_every_call}, scheduler);
  std::vector<std::vector<double>> read(static_cast<std::size_t>(ranks));
  world.run([&](Runtime& runtime) {
    run_rank(runtime, seed, read[static_cast<std::size_t>(runtime.rank())]);
  });
  sim::History all;
  all.add(world.trace_hash().low);
  all.add(world.trace_hash().high);
  all.add(world.steps());
  for (const std::vector<double>& values : read)
    for (const double value : values) all.add(std::bit_cast<std::uint64_t>(value));
  return all.value();
}

}  // namespace zeroproof
