#include "tests/engine/training_states.h"

#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/checkpoint/element_bits.h"

namespace zeroproof {
namespace {

FullTensor counting_tensor(const std::string& name, const Shape& sizes, double start) {
  FullTensor tensor{name, sizes, {}};
  for (std::int64_t i = 0; i < numel(sizes); ++i) {
    tensor.values.push_back(start + static_cast<double>(i));
  }
  return tensor;
}

Shape any_shape() {
  const auto dimensions = *rc::gen::inRange<std::size_t>(0, 4);
  return *rc::gen::container<Shape>(dimensions, rc::gen::inRange<std::int64_t>(0, 5));
}

FullTensor any_tensor(const std::string& name, const Shape& sizes, DType dtype) {
  FullTensor tensor{name, sizes, {}};
  for (std::int64_t i = 0; i < numel(sizes); ++i) {
    tensor.values.push_back(decode_element(dtype, *rc::gen::arbitrary<std::uint64_t>()));
  }
  return tensor;
}

class Turns {
 public:
  explicit Turns(int ranks) : ranks_(ranks) {}

  void wait_for(int rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == rank; });
  }

  void pass(int rank) {
    const std::lock_guard lock(mutex_);
    turn_ = (rank + 1) % ranks_;
    changed_.notify_all();
  }

 private:
  int ranks_;
  int turn_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace

TrainingState small_state(std::int64_t global_steps, double salt) {
  TrainingState state;
  double start = salt;
  const auto next = [&](const std::string& name, const Shape& sizes) {
    start += 100.0;
    return counting_tensor(name, sizes, start);
  };
  for (const auto& [name, sizes] :
       {std::pair<std::string, Shape>{"fc.weight", {2, 3}}, {"fc.bias", {2}}}) {
    state.parameters.push_back(next(name, sizes));
    state.optimizer_state.push_back(next(name + "/exp_avg", sizes));
    state.optimizer_state.push_back(next(name + "/exp_avg_sq", sizes));
    state.optimizer_state.push_back({name + "/step", {}, {static_cast<double>(global_steps)}});
  }
  state.groups = {{.parameters = {"fc.weight", "fc.bias"},
                   .hyper_parameters = {{"lr", 1e-3 + salt}, {"eps", 1e-8}}}};
  state.scheduler = SchedulerState{"OneCycle", global_steps};
  state.loss_scaler = {.scale = 65536.0, .iteration = global_steps, .last_overflow = 1};
  state.counters = {.micro_steps = 4 * global_steps,
                    .global_steps = global_steps,
                    .skipped_steps = 1,
                    .global_samples = 32 * global_steps};
  return state;
}

bool is_same_tensor(const FullTensor& a, const FullTensor& b) {
  const auto is_same_value = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  return a.name == b.name && a.sizes == b.sizes &&
         std::ranges::equal(a.values, b.values, is_same_value);
}

bool is_same_state(const TrainingState& a, const TrainingState& b) {
  return std::ranges::equal(a.parameters, b.parameters, is_same_tensor) &&
         std::ranges::equal(a.optimizer_state, b.optimizer_state, is_same_tensor) &&
         a.groups == b.groups && a.partition_rules == b.partition_rules &&
         a.loss_scaler == b.loss_scaler && a.counters == b.counters && a.scheduler == b.scheduler;
}

const FullTensor& tensor_named(const std::vector<FullTensor>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &FullTensor::name);
}

TrainingState any_state(DType dtype) {
  TrainingState state;
  const auto names =
      *rc::gen::unique<std::vector<std::string>>(rc::gen::nonEmpty(rc::gen::string<std::string>()));
  const double step = *rc::gen::inRange(0, 1000);
  const std::vector<std::vector<std::string>> kinds = {
      {}, {"exp_avg", "exp_avg_sq", "step"}, {"momentum_buffer"}, {"step"}};
  const auto keys = *rc::gen::elementOf(kinds);
  ParameterGroup group;
  for (const std::string& name : names) {
    const Shape sizes = any_shape();
    state.parameters.push_back(any_tensor(name, sizes, dtype));
    for (const std::string& key : keys) {
      const std::string state_name = name + "/" + key;
      state.optimizer_state.push_back(key == "step" ? FullTensor{state_name, {}, {step}}
                                                    : any_tensor(state_name, sizes, dtype));
    }
    group.parameters.push_back(name);
  }
  group.hyper_parameters["lr"] = *rc::gen::inRange(-1000, 1000) / 7.0;
  if (*rc::gen::arbitrary<bool>()) state.groups.push_back(group);
  if (*rc::gen::arbitrary<bool>())
    state.scheduler = SchedulerState{"WarmupLR", *rc::gen::inRange<std::int64_t>(-1, 1'000'000)};
  state.loss_scaler.scale = *rc::gen::inRange(1, 1 << 20) / 3.0;
  state.loss_scaler.growth_tracker = *rc::gen::inRange<std::int64_t>(0, 1 << 30);
  state.counters.global_steps = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  state.counters.global_samples = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 53);
  return state;
}

void run_ranks(int ranks, const RankBody& body) {
  Turns turns(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      turns.wait_for(rank);
      body(rank, [&, rank] {
        turns.pass(rank);
        turns.wait_for(rank);
      });
      turns.pass(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<Result<void>> save_parts(const std::vector<TrainingState>& states, FileSystem& files,
                                     const SaveOptions& options, ParallelSizes sizes) {
  std::vector<Result<void>> results(states.size());
  run_ranks(static_cast<int>(states.size()), [&](int rank, const auto& barrier) {
    SaveOptions own = options;
    own.place = {{rank % sizes.tensor, sizes.tensor}, {rank / sizes.tensor, sizes.expert}};
    own.barrier = barrier;
    const auto at = static_cast<std::size_t>(rank);
    results[at] = save_checkpoint(states[at], files, "run", own);
  });
  return results;
}

}  // namespace zeroproof
