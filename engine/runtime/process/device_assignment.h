#pragma once

#include <string>
#include <vector>

#include "zeroproof/engine/runtime/process/launch.h"

namespace zeroproof {

// Which GPU a process of a job takes.
struct DeviceAssignment {
  int ordinal = 0;
  std::string device = {};   // what no other GPU of the job is called; the runtime's to say
  std::string problem = {};  // why there is none; empty: there is
};

// Of `visible` GPUs that of its number on this machine; or the only one, where a launcher shows
// each process its own.
DeviceAssignment gpu_seat_of(const Launch& launch, int visible);

// What all processes found, by rank: the first problem, or two ranks on one GPU; empty: each has
// its own.
std::string problem_of(const std::vector<DeviceAssignment>& seats);

}  // namespace zeroproof
