#include <cstddef>
#include <cstdint>

#include "tests/fuzz/manifest_input.h"

// libFuzzer entry: any bytes must be a file of a checkpoint or an error of one line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeroproof::read_any_checkpoint_file({reinterpret_cast<const char*>(data), size});
  return 0;
}
