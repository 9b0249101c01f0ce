#include <cstddef>
#include <cstdint>

#include "tests/fuzz/dump_input.h"

// libFuzzer entry: any bytes, plain or gzip, must end in a dump or an error of one line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeroproof::read_any_dump({reinterpret_cast<const char*>(data), size});
  return 0;
}
