#include "bench/checkpoint/process_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace zeroproof {

ProcessMemory process_memory() {
  ProcessMemory found;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmData:") status >> found.data;
    if (word == "VmRSS:") status >> found.resident;
    if (word == "VmHWM:") status >> found.resident_peak;
  }
  return found;
}

void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

void limit_more_memory(std::int64_t kib) {
  rlimit limit = {};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur =
      kib == 0 ? limit.rlim_max : static_cast<rlim_t>((process_memory().data + kib) * 1024);
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace zeroproof
