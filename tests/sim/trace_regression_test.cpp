#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/trace/perfetto.h"
#include "tests/fuzz/trace_input.h"

namespace zeroproof {
namespace {

void export_any_bytes(const std::string& bytes) {
  NameTable names;
  auto reader = TraceReader::from_bytes(bytes, "input", names);
  if (!reader) return;
  std::vector<TraceReader> readers;
  readers.push_back(std::move(*reader));
  const auto sink = [](std::string_view) { return Result<void>(); };
  EXPECT_NO_THROW(export_perfetto(readers, names, sink));
}

// Inputs that are hard for a reader, and every input on which the fuzzer once failed. That they
// end at all, under the sanitizers too, is the test.
TEST(TraceReader, Survives_the_inputs_of_the_fuzzer) {
  int inputs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ZP_SOURCE_DIR "/tests/fuzz/regressions")) {
    SCOPED_TRACE(entry.path().filename());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    read_any_bytes(bytes);
    export_any_bytes(bytes);
    ++inputs;
  }
  EXPECT_GE(inputs, 16);
}

}  // namespace
}  // namespace zeroproof
