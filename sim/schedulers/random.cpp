#include "sim/schedulers/random.h"

#include <pcg_random.hpp>

#include "model/check.h"

namespace zeroproof {

struct RandomScheduler::Generator {
  pcg32 engine;
};

RandomScheduler::RandomScheduler(std::uint64_t seed)
    : seed_(seed), generator_(std::make_unique<Generator>()) {}

RandomScheduler::~RandomScheduler() = default;

bool RandomScheduler::new_execution() {
  generator_->engine.seed(seed_, next_execution_++);
  return true;
}

// The engine's own bounded draw: unbiased, and unlike <random> the same in every library.
std::size_t RandomScheduler::choose(const ChoicePoint& at) {
  ZP_CHECK(!at.options.empty(), "a choice point without options");
  if (at.options.size() == 1) return 0;
  return generator_->engine(static_cast<std::uint32_t>(at.options.size()));
}

}  // namespace zeroproof
