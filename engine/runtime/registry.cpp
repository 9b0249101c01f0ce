#include "engine/runtime/registry.h"

#include <algorithm>

namespace zeroproof {

const std::vector<RuntimeInfo>& runtimes() {
  static const std::vector<RuntimeInfo> kRuntimes = {
      {"host", "ranks are threads of this process, collectives go through shared memory", true, ""},
      {"sim", "ranks share one thread in virtual time, every order is a choice", true, ""},
      {"cuda", "a rank is a process with a GPU, collectives go through NCCL", false,
       "this build has no CUDA runtime; use host"},
  };
  return kRuntimes;
}

const RuntimeInfo* find_runtime(std::string_view name) {
  const auto& all = runtimes();
  const auto found = std::ranges::find(all, name, &RuntimeInfo::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace zeroproof
