#include <cstddef>
#include <cstdint>

#include "tests/fuzz/trace_input.h"

// libFuzzer entry: any bytes, plain or gzip, must end in records, an error or a truncation.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeroproof::read_any_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
