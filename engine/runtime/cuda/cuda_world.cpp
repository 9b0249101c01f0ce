#include "zeroproof/engine/runtime/cuda/cuda_world.h"

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/cuda_rank.h"
#include "engine/runtime/cuda/gpu_set.h"
#include "engine/runtime/cuda/host_peers.h"
#include "engine/runtime/host/rank_errors.h"
#include "engine/runtime/process/byte_strings.h"
#include "engine/runtime/process/device_assignment.h"
#include "zeroproof/engine/runtime/process/job.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {
namespace {

int gpu_count(std::string& problem) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  problem = result == cudaSuccess ? "CUDA sees no GPU"
                                  : fmt::format("CUDA sees no GPU: {}", cudaGetErrorString(result));
  return 0;
}

DeviceAssignment find_seat(const Launch& launch) {
  std::string problem;
  const int visible = gpu_count(problem);
  if (!problem.empty()) return {.problem = problem};
  DeviceAssignment seat = gpu_seat_of(launch, visible);
  if (!seat.problem.empty()) return seat;
  std::array<char, 32> address{};
  ZP_CUDA(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), seat.ordinal));
  seat.device = fmt::format("{} of {}", address.data(), cuda::host_name());
  return seat;
}

}  // namespace

int visible_gpus() {
  std::string problem;
  return gpu_count(problem);
}

std::string cuda_unavailable() {
  std::string problem;
  gpu_count(problem);
  return problem;
}

Result<Gpus> Gpus::open(int count) {
  std::string problem;
  const int found = gpu_count(problem);
  if (!problem.empty()) return fail(ErrorCode::cannot_run, problem + "; use --runtime host");
  if (found < count)
    return fail(ErrorCode::cannot_run,
                fmt::format("{} ranks need as many GPUs, and CUDA sees {}", count, found));
  Gpus gpus;
  gpus.set_ = std::make_shared<cuda::GpuSet>(count);
  return gpus;
}

// All hear what each found: none goes on alone.
Result<Gpus> Gpus::open(std::shared_ptr<Job> job) {
  const DeviceAssignment mine = find_seat(job->launch());
  std::vector<DeviceAssignment> seats;
  for (const std::string& found : job->all_gather(pack({mine.device, mine.problem}))) {
    const auto parts = unpack(found);
    if (!parts || parts->size() != 2)
      return fail(ErrorCode::failed,
                  fmt::format("what rank {} says of its GPU is damaged", seats.size()));
    seats.push_back({.device = parts->at(0), .problem = parts->at(1)});
  }
  if (const std::string problem = problem_of(seats); !problem.empty())
    return fail(ErrorCode::cannot_run, problem);
  Gpus gpus;
  gpus.set_ = std::make_shared<cuda::GpuSet>(job, mine.ordinal);
  gpus.job_ = std::move(job);
  return gpus;
}

int Gpus::count() const {
  return static_cast<int>(set_->gpus().size());
}

bool Gpus::reach_each_other() const {
  return set_ == nullptr || set_->reach_each_other();  // of none, all do
}

std::int64_t Gpus::peak_bytes() const {
  return set_->first().pool().peak_bytes();
}

void Gpus::reset_peak() const {
  set_->first().pool().reset_peak();
}

struct CudaWorld::State {
  explicit State(std::shared_ptr<cuda::GpuSet> set) : gpus(std::move(set)), turn(gpus->turn()) {}

  std::shared_ptr<cuda::GpuSet> gpus;
  std::unique_lock<std::mutex> turn;
  std::vector<std::unique_ptr<cuda::CudaRank>> ranks;

  void make_groups(GroupKind kind, const CudaWorldOptions& options) {
    for (const std::vector<int>& members : group_layout(kind, options.world_size, options.degrees))
      for (std::size_t i = 0; i < members.size(); ++i)
        if (const auto& rank = ranks[static_cast<std::size_t>(members[i])])
          rank->join({kind, members, static_cast<int>(i)},
                     members.size() == 1 ? nullptr : gpus->clique(kind, members));
  }

  std::exception_ptr run_rank(const Program& program, int rank) {
    cuda::CudaRank& runtime = *ranks[static_cast<std::size_t>(rank)];
    try {
      runtime.enter();
      program(runtime);
      runtime.leave();
      return nullptr;
    } catch (...) {
      std::exception_ptr error = std::current_exception();
      if (gpus->job()) error = gpus->job()->explained(error);
      const std::string reason = host::abort_reason(rank, error);
      for (const std::unique_ptr<cuda::CudaRank>& other : ranks)
        if (other) other->abort(reason);
      if (gpus->job() && !host::is_abort(error)) gpus->job()->fail(reason);
      return error;
    }
  }
};

CudaWorld::CudaWorld(const CudaWorldOptions& options, const Gpus& gpus)
    : state_(std::make_unique<State>(gpus.set_)) {
  require(options.world_size <= gpus.count(), "a world of more ranks than GPUs");
  require(options.observers.empty() || std::cmp_equal(options.observers.size(), options.world_size),
          "a world has observers for each rank or for none");
  for (int rank = 0; rank < options.world_size; ++rank) {
    const std::shared_ptr<cuda::Gpu>& gpu = gpus.set_->gpus()[static_cast<std::size_t>(rank)];
    if (gpu) gpu->make_current();
    state_->ranks.push_back(gpu ? std::make_unique<cuda::CudaRank>(options, rank, gpu) : nullptr);
  }
  for (int kind = 0; kind < kGroupKinds; ++kind)
    state_->make_groups(static_cast<GroupKind>(kind), options);
}

CudaWorld::~CudaWorld() = default;

int CudaWorld::world_size() const {
  return static_cast<int>(state_->ranks.size());
}

Runtime& CudaWorld::runtime(int rank) {
  require(rank >= 0 && rank < world_size(), "a rank outside the world");
  require(state_->ranks[static_cast<std::size_t>(rank)] != nullptr, "a rank of another process");
  return *state_->ranks[static_cast<std::size_t>(rank)];
}

void CudaWorld::run(const Program& program) {
  host::rethrow_first(try_run(program));
}

std::vector<std::exception_ptr> CudaWorld::try_run(const Program& program) {
  std::vector<std::exception_ptr> errors(state_->ranks.size());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (!state_->ranks[static_cast<std::size_t>(rank)]) continue;
    threads.emplace_back([this, &program, &errors, rank] {
      errors[static_cast<std::size_t>(rank)] = state_->run_rank(program, rank);
    });
  }
  threads.clear();  // joins
  return errors;
}

}  // namespace zeroproof
