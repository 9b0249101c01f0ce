// Compares every kernel of engine/runtime/cuda/fused with a float64 reference and times it at the
// shapes of M267 (batch 8; S 1024 and 512). Needs a GPU: exit code 77 without one, 1 when a
// comparison failed, 2 when a CUDA call did.
//
//   fused_kernels_check [--only PART_OF_A_NAME] [--no-timing] [--small]

#include <cstdio>
#include <exception>
#include <string>

#include "tests/cuda/check.h"

namespace {

using zeroproof::check::Suite;

bool parse(int argc, char** argv, Suite& suite) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--only" && i + 1 < argc) {
      suite.only = argv[++i];
    } else if (argument == "--no-timing") {
      suite.is_timing = false;
    } else if (argument == "--small") {
      suite.is_small = true;
      suite.is_timing = false;
    } else {
      std::printf("unknown argument %s\n", argument.c_str());
      return false;
    }
  }
  return true;
}

struct Part {
  const char* name;
  void (*run)(Suite&);
};

constexpr Part kParts[] = {
    {"rms_norm", zeroproof::check::check_rms_norm},
    {"rotary", zeroproof::check::check_rotary},
    {"gelu", zeroproof::check::check_gelu},
    {"cross_entropy", zeroproof::check::check_cross_entropy},
    {"embedding", zeroproof::check::check_embedding},
    {"adam", zeroproof::check::check_adam},
    {"rank_sum", zeroproof::check::check_rank_sum},
    {"attention", zeroproof::check::check_attention},
    {"gemm", zeroproof::check::check_gemm},
};

}  // namespace

int main(int argc, char** argv) {
  Suite suite;
  if (!parse(argc, argv, suite)) return 2;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no GPU: nothing checked\n");
    return 77;
  }
  for (const Part& part : kParts) {
    try {
      part.run(suite);
    } catch (const std::exception& error) {
      ++suite.failures;
      std::printf("%-30s FAIL: %s\n", part.name, error.what());
    }
  }
  ZP_REQUIRE(cudaDeviceSynchronize());
  std::printf("%d failed\n", suite.failures);
  return suite.failures == 0 ? 0 : 1;
}
