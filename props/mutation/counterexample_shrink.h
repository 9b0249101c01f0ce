#pragma once

#include <cstdint>
#include <functional>

#include "props/mutation/hunt.h"

namespace zeroproof::mutation {

struct ShrunkCounterexample {
  Counterexample counterexample;
  std::uint64_t runs = 0;
};

// Something smaller that falsifies one of `numbers` with the fault's fault and nothing on the
// unmutated engine: program, configuration and world together (train::simpler_cases), then the
// order. Without a fault: something that falsifies one of them on the unmutated engine.
// `should_stop` ends it early with what there is.
ShrunkCounterexample shrink(const Counterexample& counterexample, const Fault* fault,
                            std::string_view numbers, const std::function<bool()>& should_stop);

}  // namespace zeroproof::mutation
