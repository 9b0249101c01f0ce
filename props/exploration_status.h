#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "props/exploration.h"

namespace zeroproof {

// What an exploration comes to, worst last.
enum class ExplorationStatus {
  held,            // in every order the scheduler was to run
  inconclusive,    // exhaustive, but a budget ended it early
  falsified,       // some order broke a property
  interrupted,     // by the user, before anything was falsified
  miscounted,      // our own mistake: orders explored and linear extensions differ
  nondeterminism,  // the same schedule led elsewhere
};

ExplorationStatus status_of(const ExplorationReport& report);

// "held", "inconclusive", ... The view is static.
std::string_view exploration_status_name(ExplorationStatus status);

// "P1 P7": the numbers of the falsified properties, in catalogue order; empty when all held.
std::string falsified_numbers(const ExplorationReport& report);
std::vector<std::string> falsified_numbers(const std::vector<Verdict>& verdicts);

}  // namespace zeroproof
