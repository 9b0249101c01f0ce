#pragma once

#include <cstdint>

namespace zeroproof {

// What this process takes, in KiB, as Linux counts it.
struct ProcessMemory {
  std::int64_t data = 0;           // private, writable: what RLIMIT_DATA limits
  std::int64_t resident = 0;       // now
  std::int64_t resident_peak = 0;  // since reset_peak()
};

ProcessMemory process_memory();
void reset_peak();

// From here on no more than `kib` beside what it takes now; 0: no limit. More is a bad_alloc.
void limit_more_memory(std::int64_t kib);

}  // namespace zeroproof
