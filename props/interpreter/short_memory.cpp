#include "props/interpreter/short_memory.h"

namespace zeroproof::program {

Tensor ShortMemory::allocate(std::int64_t elements, DType dtype, Placement placement) {
  const bool counts = left_ > 0 && placement == Placement::device && elements > 0;
  if (counts && --left_ == 0) throw RuntimeFault("out of memory: the device has no room");
  return inner_.allocate(elements, dtype, placement);
}

}  // namespace zeroproof::program
