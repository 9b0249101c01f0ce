// The inputs of the fuzzers of tests/fuzz that look at the engine.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/fuzz/manifest_input.h"
#include "tests/fuzz/rendezvous_input.h"
#include "tests/fuzz/store_input.h"
#include "tests/read_file.h"

namespace zeroproof {
namespace {

struct FuzzTarget {
  const char* corpus;
  std::function<void(std::string_view)> run;
};

TEST(Fuzz, Inputs_that_were_kept_hold) {
  const FuzzTarget targets[] = {{"store_corpus", ask_any_store},
                                {"rendezvous_corpus", run_any_collective},
                                {"manifest_corpus", read_any_checkpoint_file}};
  for (const FuzzTarget& target : targets) {
    int inputs = 0;
    const std::string folder = std::string(ZP_SOURCE_DIR "/tests/fuzz/") + target.corpus;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path());
      EXPECT_NO_THROW(target.run(read_file(entry.path().string())));
      ++inputs;
    }
    EXPECT_LE(5, inputs) << target.corpus;
  }
}

}  // namespace
}  // namespace zeroproof
