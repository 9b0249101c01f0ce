#include <cstddef>
#include <cstdint>

#include "tests/fuzz/store_input.h"

// libFuzzer entry: any messages to a store must be answered or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  zeroproof::ask_any_store({reinterpret_cast<const char*>(data), size});
  return 0;
}
