#include "sim/schedulers/pct.h"

#include <algorithm>
#include <cmath>
#include <pcg_random.hpp>

#include "model/check.h"

namespace zeroproof {
namespace {

// Priorities of tasks that were not lowered lie above those of change points.
constexpr std::uint64_t kUsual = std::uint64_t{1} << 32;

}  // namespace

double PctCertificate::hit_chance() const {
  if (tasks == 0 || steps == 0) return 0.0;
  return 1.0 / (static_cast<double>(tasks) * std::pow(static_cast<double>(steps), depth - 1));
}

double PctCertificate::miss_chance() const {
  return std::exp(static_cast<double>(runs) * std::log1p(-std::min(hit_chance(), 1.0)));
}

std::uint64_t PctCertificate::runs_for(double miss) const {
  const double hit = std::min(hit_chance(), 1.0);
  if (hit <= 0.0 || miss >= 1.0) return 0;
  if (hit >= 1.0) return 1;
  return static_cast<std::uint64_t>(std::ceil(std::log(miss) / std::log1p(-hit)));
}

struct PctScheduler::Generator {
  pcg32 engine;
};

PctScheduler::PctScheduler(int depth, std::uint64_t seed)
    : seed_(seed), generator_(std::make_unique<Generator>()) {
  ZP_CHECK(depth >= 1, "PCT of a depth below 1");
  certificate_.depth = depth;
}

PctScheduler::~PctScheduler() = default;

bool PctScheduler::new_execution() {
  generator_->engine.seed(seed_, next_execution_++);
  step_ = 0;
  priorities_.clear();
  changes_.clear();
  const auto steps = static_cast<std::uint32_t>(std::max<std::uint64_t>(certificate_.steps, 1));
  for (int i = 1; i < certificate_.depth; ++i) changes_.push_back(generator_->engine(steps));
  std::ranges::sort(changes_);
  return true;
}

// Ties are as good as impossible, and the first option wins them.
std::uint64_t PctScheduler::priority_of(std::string_view task) {
  const auto known = priorities_.find(task);
  if (known != priorities_.end()) return known->second;
  const std::uint64_t drawn = kUsual + generator_->engine();
  priorities_.emplace(task, drawn);
  return drawn;
}

std::size_t PctScheduler::choose(const ChoicePoint& at) {
  ZP_CHECK(!at.options.empty(), "a choice point without options");
  if (at.options.size() == 1) return 0;
  const auto highest = [&] {
    std::size_t best = 0;
    std::uint64_t best_priority = 0;
    for (std::size_t i = 0; i < at.options.size(); ++i) {
      const std::uint64_t priority = priority_of(at.options[i]);
      if (priority <= best_priority) continue;
      best = i;
      best_priority = priority;
    }
    return best;
  };
  std::size_t choice = highest();
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i] != step_) continue;
    priorities_.find(at.options[choice])->second = i + 1;
    choice = highest();
  }
  ++step_;
  return choice;
}

void PctScheduler::end_execution(const ExecutionEnd&) {
  const bool is_larger = step_ > certificate_.steps || priorities_.size() > certificate_.tasks;
  certificate_.steps = std::max(certificate_.steps, step_);
  certificate_.tasks = std::max<std::uint64_t>(certificate_.tasks, priorities_.size());
  certificate_.runs = is_larger ? 0 : certificate_.runs + 1;
}

}  // namespace zeroproof
