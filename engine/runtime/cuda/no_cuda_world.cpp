#include "model/check.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"

// The twin of cuda_world.cpp in a build without CUDA: no world can be opened, so no member is
// ever called.
namespace zeroproof {
namespace {

constexpr const char* kReason = "this build has no CUDA runtime";
constexpr const char* kAdvice = "this build has no CUDA runtime; use --runtime host";

[[noreturn]] void refuse() {
  ZP_CHECK(false, kReason);
  std::terminate();
}

}  // namespace

int visible_gpus() {
  return 0;
}

std::string cuda_unavailable() {
  return kReason;
}

Result<Gpus> Gpus::open(int) {
  return fail(ErrorCode::cannot_run, kAdvice);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): its twin keeps the job
Result<Gpus> Gpus::open(std::shared_ptr<Job>) {
  return open(1);
}

int Gpus::count() const {
  return 0;
}

bool Gpus::reach_each_other() const {
  return true;  // of none, all do
}

std::int64_t Gpus::peak_bytes() const {
  return 0;
}
void Gpus::reset_peak() const {}

struct CudaWorld::State {};

CudaWorld::CudaWorld(const CudaWorldOptions&, const Gpus&) {
  refuse();
}
CudaWorld::~CudaWorld() = default;

int CudaWorld::world_size() const {
  return 0;
}
Runtime& CudaWorld::runtime(int) {
  refuse();
}
void CudaWorld::run(const Program&) {
  refuse();
}
std::vector<std::exception_ptr> CudaWorld::try_run(const Program&) {
  refuse();
}

}  // namespace zeroproof
