#include "engine/runtime/process/device_assignment.h"

#include <fmt/format.h>

namespace zeroproof {

DeviceAssignment gpu_seat_of(const Launch& launch, int visible) {
  if (!launch.local_rank)
    return {.problem = fmt::format("{} does not say which process of its machine this is, and so "
                                   "which GPU it takes: set LOCAL_RANK",
                                   launch.launcher)};
  const int ordinal = visible == 1 ? 0 : *launch.local_rank;
  if (ordinal < visible) return {.ordinal = ordinal};
  return {.problem = fmt::format("process {} of its machine needs {} GPUs there, and CUDA sees {}",
                                 ordinal, ordinal + 1, visible)};
}

std::string problem_of(const std::vector<DeviceAssignment>& seats) {
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    if (!seats[rank].problem.empty()) return fmt::format("rank {}: {}", rank, seats[rank].problem);
    for (std::size_t other = 0; other < rank; ++other)
      if (seats[other].device == seats[rank].device)
        return fmt::format("ranks {} and {} have the same GPU ({}): give each process its own",
                           other, rank, seats[rank].device);
  }
  return {};
}

}  // namespace zeroproof
