#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

class Job;

namespace cuda {
class CudaRank;
class GpuSet;
}  // namespace cuda

// The GPUs of this process and the NCCL communicators between them, or the one of this process and
// those with others. They take long to make: kept from world to world. Worlds on them take turns.
class Gpus {
 public:
  // An error without that many GPUs, or in a build without CUDA: what is missing, in one line.
  static Result<Gpus> open(int count);
  // One for the rank that this process is of the job: that of its number on this machine, or the
  // only one that it sees. The same error on every process when one of them finds none.
  static Result<Gpus> open(std::shared_ptr<Job> job);
  int count() const;  // of the ranks that have one
  // Null: the ranks are threads of this process.
  const std::shared_ptr<Job>& job() const { return job_; }
  // Whether each reaches the memory of all others: CudaCollectives::copies need it. The same on
  // every process.
  bool reach_each_other() const;
  // The most memory of this process's first GPU in use at once since the reset: the engine's and
  // the model's with all that an iteration needs, not the libraries' own. RuntimeFault where CUDA
  // refuses.
  std::int64_t peak_bytes() const;
  void reset_peak() const;

 private:
  friend class CudaWorld;
  std::shared_ptr<Job> job_;
  std::shared_ptr<cuda::GpuSet> set_;
};

int visible_gpus();  // 0 also in a build without CUDA
// Why no GPU can be used here; empty when one can.
std::string cuda_unavailable();

// Which of several ways the model's arithmetic goes.
struct CudaArithmetic {
  bool is_deterministic = true;  // two runs have the same bits; else the fastest algorithms
  bool uses_cudnn = true;        // else attention is done by our own kernels
};

// How the reductions of a group go whose GPUs reach each other's memory. Other groups have NCCL.
enum class CudaCollectives : std::uint8_t {
  copies,  // by copy engines, summed in rank order: the bits of the host runtime
  nccl,    // in the order of NCCL's algorithms
};

struct CudaWorldOptions {
  int world_size = 1;
  ParallelDegrees degrees = {};
  std::int64_t timeout_ms = 60'000;  // of a host that waits for its GPU
  Device device = Device::cuda(0);   // what each rank's GPU counts as in its own process
  bool is_poisoned = true;           // what the contract calls garbage is NaN
  CudaArithmetic arithmetic = {};
  CudaCollectives collectives = CudaCollectives::copies;
  // To time a program without them: a rank's own part stands in for what others would send.
  bool leaves_out_collectives = false;
  std::vector<RankObservers> observers = {};  // empty, or one for each rank; must outlive the world
};

// Ranks as threads of this process, a GPU each, or as the processes of a job, with collectives
// through NCCL. Runs the programs of a HostWorld; the same calls have the same meaning. Processes
// make their worlds in one order; in one of fewer ranks than the job the others take no part.
class CudaWorld {
 public:
  using Program = std::function<void(Runtime& runtime)>;

  // UsageError for more ranks than GPUs, or degrees that do not divide. RuntimeFault where NCCL
  // does not connect them.
  CudaWorld(const CudaWorldOptions& options, const Gpus& gpus);
  ~CudaWorld();
  CudaWorld(const CudaWorld&) = delete;
  CudaWorld& operator=(const CudaWorld&) = delete;

  int world_size() const;
  Runtime& runtime(int rank);
  // As of HostWorld.
  void run(const Program& program);
  std::vector<std::exception_ptr> try_run(const Program& program);

 private:
  struct State;  // none in a build without CUDA
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
