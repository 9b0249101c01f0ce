#include "sim/schedulers/record.h"

namespace zeroproof {

bool RecordScheduler::new_execution() {
  choices_.clear();
  return inner_.new_execution();
}

std::size_t RecordScheduler::choose(const ChoicePoint& at) {
  const std::size_t taken = inner_.choose(at);
  if (at.options.size() > 1) choices_.push_back(static_cast<std::uint32_t>(taken));
  return taken;
}

}  // namespace zeroproof
