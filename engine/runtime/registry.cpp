#include "engine/runtime/registry.h"

#include <algorithm>
#include <string>

#include "zeroproof/engine/runtime/cuda/cuda_world.h"

namespace zeroproof {

const std::vector<RuntimeInfo>& runtimes() {
  static const std::string kNoCuda = cuda_unavailable();
  static const std::vector<RuntimeInfo> kRuntimes = {
      {"host",
       "ranks are threads, collectives go through shared memory; or processes "
       "(docs/how-to/train_on_gpus.md)",
       true, ""},
      {"sim", "ranks share one thread in virtual time, every order is a choice", true, ""},
      {"cuda", "ranks are threads or processes with a GPU each, collectives go through NCCL",
       kNoCuda.empty(), kNoCuda},
  };
  return kRuntimes;
}

const RuntimeInfo* find_runtime(std::string_view name) {
  const auto& all = runtimes();
  const auto found = std::ranges::find(all, name, &RuntimeInfo::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace zeroproof
