#pragma once

#include <string>
#include <vector>

#include "engine/runtime/process/launch.h"

namespace zeroproof {

// Which GPU a process of a job takes.
struct GpuSeat {
  int ordinal = 0;
  std::string device = {};   // what no other GPU of the job is called; the runtime's to say
  std::string problem = {};  // why there is none; empty: there is
};

// Of `visible` GPUs that of its number on this machine; or the only one, where a launcher shows
// each process its own.
GpuSeat gpu_seat_of(const Launch& launch, int visible);

// What all processes found, by rank: the first problem, or two ranks on one GPU; empty: each has
// its own.
std::string problem_of(const std::vector<GpuSeat>& seats);

}  // namespace zeroproof
