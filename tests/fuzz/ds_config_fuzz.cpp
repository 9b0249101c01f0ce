#include <cstddef>
#include <cstdint>

#include "tests/fuzz/ds_config_input.h"

// libFuzzer entry: any bytes must end in a configuration or an error of one line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeroproof::read_any_config(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
