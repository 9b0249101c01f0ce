#include <cstddef>
#include <cstdint>

#include "tests/fuzz/rendezvous_input.h"

// libFuzzer entry: any parts of processes must be refused or make a collective.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeroproof::run_any_collective({reinterpret_cast<const char*>(data), size});
  return 0;
}
