#pragma once

#include <cstdint>
#include <functional>

#include "props/museum/hunt.h"

namespace zeroproof::museum {

struct ShrunkSpecimen {
  Specimen specimen;
  std::uint64_t runs = 0;
};

// Something smaller that falsifies one of `numbers` with the entry's fault and nothing on the
// healthy engine: program, configuration and world together (train::simpler_cases), then the
// order. Without an entry: something that falsifies one of them on the healthy engine.
// `should_stop` ends it early with what there is.
ShrunkSpecimen shrink(const Specimen& specimen, const Entry* entry, std::string_view numbers,
                      const std::function<bool()>& should_stop);

}  // namespace zeroproof::museum
