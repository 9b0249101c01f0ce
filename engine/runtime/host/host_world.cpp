#include "zeroproof/engine/runtime/host/host_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <thread>
#include <utility>

#include "engine/runtime/host/host_runtime.h"
#include "engine/runtime/host/process_rendezvous.h"
#include "engine/runtime/host/rank_errors.h"
#include "engine/runtime/host/thread_rendezvous.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {

HostWorld::HostWorld(const HostWorldOptions& options) : job_(options.job) {
  require(options.world_size > 0, fmt::format("a world of {} ranks", options.world_size));
  require(options.observers.empty() || std::cmp_equal(options.observers.size(), options.world_size),
          fmt::format("{} observers of {} ranks; give one for each, or none",
                      options.observers.size(), options.world_size));
  require(!job_ || job_->size() == options.world_size, "a job has a process for each rank");
  runtimes_.resize(static_cast<std::size_t>(options.world_size));
  for (int rank = 0; rank < options.world_size; ++rank)
    if (!job_ || job_->rank() == rank)
      runtimes_[static_cast<std::size_t>(rank)] =
          std::make_unique<host::HostRuntime>(options, rank);
  for (int kind = 0; kind < kGroupKinds; ++kind) make_groups(static_cast<GroupKind>(kind), options);
}

HostWorld::~HostWorld() = default;

void HostWorld::make_groups(GroupKind kind, const HostWorldOptions& options) {
  for (const std::vector<int>& ranks : group_layout(kind, options.world_size, options.degrees)) {
    const auto rendezvous = rendezvous_of(kind, ranks, options);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (const auto& runtime = runtimes_[static_cast<std::size_t>(ranks[i])])
        runtime->join({kind, ranks, static_cast<int>(i)}, rendezvous);
  }
}

std::shared_ptr<host::Rendezvous> HostWorld::rendezvous_of(GroupKind kind,
                                                           const std::vector<int>& ranks,
                                                           const HostWorldOptions& options) const {
  const std::string name =
      fmt::format("{} group [{}]", host::group_name(kind), fmt::join(ranks, ", "));
  if (job_)
    return std::make_shared<host::ProcessRendezvous>(job_, name, ranks, options.is_poisoned);
  return std::make_shared<host::ThreadRendezvous>(
      host::ThreadRendezvous::Options{.name = name,
                                      .size = static_cast<int>(ranks.size()),
                                      .timeout = std::chrono::milliseconds(options.timeout_ms),
                                      .has_garbage = options.is_poisoned});
}

Runtime& HostWorld::runtime(int rank) {
  require(rank >= 0 && rank < world_size(),
          fmt::format("rank {} of a world of {}", rank, world_size()));
  const auto& runtime = runtimes_[static_cast<std::size_t>(rank)];
  require(runtime != nullptr, fmt::format("rank {} belongs to another process", rank));
  return *runtime;
}

void HostWorld::run(const Program& program) {
  host::rethrow_first(try_run(program));
}

std::vector<std::exception_ptr> HostWorld::try_run(const Program& program) {
  for (const std::unique_ptr<host::HostRuntime>& runtime : runtimes_)
    if (runtime) runtime->enter();
  std::vector<std::exception_ptr> errors(runtimes_.size());
  const auto run = [this, &program, &errors](int rank) {
    errors[static_cast<std::size_t>(rank)] = run_rank(program, rank);
  };
  if (job_ || world_size() == 1) {
    run(job_ ? job_->rank() : 0);
    return errors;
  }
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size(); ++rank) threads.emplace_back(run, rank);
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
  for (const std::unique_ptr<host::HostRuntime>& runtime : runtimes_)
    if (runtime) runtime->abort(reason);
  if (job_ && !host::is_abort(error)) job_->fail(reason);
}

}  // namespace zeroproof
