#include "sim/schedulers/fifo.h"

#include <utility>

namespace zeroproof {

bool FifoScheduler::new_execution() {
  return !std::exchange(has_run_, true);
}

}  // namespace zeroproof
