#include "engine/runtime/host/host_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <thread>
#include <utility>

#include "engine/runtime/host/host_runtime.h"
#include "engine/runtime/host/rank_errors.h"
#include "model/check.h"

namespace zeroproof {

HostWorld::HostWorld(const HostWorldOptions& options) {
  ZP_CHECK(
      options.observers.empty() || std::cmp_equal(options.observers.size(), options.world_size),
      "a world has observers for each rank or for none");
  for (int rank = 0; rank < options.world_size; ++rank)
    runtimes_.push_back(std::make_unique<host::HostRuntime>(options, rank));
  for (int kind = 0; kind < kGroupKinds; ++kind) make_groups(static_cast<GroupKind>(kind), options);
}

HostWorld::~HostWorld() = default;

void HostWorld::make_groups(GroupKind kind, const HostWorldOptions& options) {
  for (const std::vector<int>& ranks : group_layout(kind, options.world_size, options.degrees)) {
    const auto rendezvous = std::make_shared<host::Rendezvous>(host::Rendezvous::Options{
        .name = fmt::format("{} group [{}]", host::group_name(kind), fmt::join(ranks, ", ")),
        .size = static_cast<int>(ranks.size()),
        .timeout = std::chrono::milliseconds(options.timeout_ms),
        .has_garbage = options.is_poisoned});
    for (std::size_t i = 0; i < ranks.size(); ++i)
      runtimes_[static_cast<std::size_t>(ranks[i])]->join({kind, ranks, static_cast<int>(i)},
                                                          rendezvous);
  }
}

Runtime& HostWorld::runtime(int rank) {
  ZP_CHECK(rank >= 0 && rank < world_size(), "a rank outside the world");
  return *runtimes_[static_cast<std::size_t>(rank)];
}

void HostWorld::run(const Program& program) {
  host::rethrow_first(try_run(program));
}

std::vector<std::exception_ptr> HostWorld::try_run(const Program& program) {
  for (const std::unique_ptr<host::HostRuntime>& runtime : runtimes_) runtime->enter();
  if (world_size() == 1) return {run_rank(program, 0)};
  std::vector<std::exception_ptr> errors(runtimes_.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size(); ++rank)
    threads.emplace_back([this, &program, &errors, rank] {
      errors[static_cast<std::size_t>(rank)] = run_rank(program, rank);
    });
  threads.clear();  // joins
  return errors;
}

std::exception_ptr HostWorld::run_rank(const Program& program, int rank) {
  try {
    program(runtime(rank));
  } catch (...) {
    abort_all(rank, std::current_exception());
    return std::current_exception();
  }
  runtimes_[static_cast<std::size_t>(rank)]->leave();
  return nullptr;
}

void HostWorld::abort_all(int rank, const std::exception_ptr& error) {
  const std::string reason = host::abort_reason(rank, error);
  for (const std::unique_ptr<host::HostRuntime>& runtime : runtimes_) runtime->abort(reason);
}

}  // namespace zeroproof
