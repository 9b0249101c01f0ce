#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "props/hunt/program_hunt.h"

namespace zeroproof::hunt {

// Hunts every fault, each by one of so many threads, which draw the same programs. What is found
// stands in the order of `faults`, which must outlive it; with budgets of cases it does not depend
// on the number of threads. `on_found` is called by one thread at a time, the functions of `watch`
// by all.
std::vector<ProgramFound> hunt_all(const std::vector<Mutant>& faults,
                                   const ProgramHuntOptions& options, std::size_t workers,
                                   const ProgramHuntWatch& watch,
                                   const std::function<void(const ProgramFound&)>& on_found);

}  // namespace zeroproof::hunt
