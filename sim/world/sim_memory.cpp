#include "sim/world/sim_memory.h"

#include "engine/runtime/fault.h"

namespace zeroproof::sim {

Tensor SimMemory::allocate(std::int64_t elements, DType dtype, Placement placement) {
  control_.reach(SeamCall::allocation);
  try {
    return memory_.allocate(elements, dtype, placement);
  } catch (const RuntimeFault& fault) {
    control_.report(FindingKind::out_of_memory, fault.what());
    throw;
  }
}

}  // namespace zeroproof::sim
