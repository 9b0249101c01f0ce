#pragma once

#include <string>
#include <vector>

#include "zeroproof/internal/engine/release.h"

namespace zeroproof::cli_test {

// A line of recorder/hazards/run.sh.
struct HazardCase {
  std::string hazard;  // "H3"
  std::string word;    // "CONFIRMED", "absent", "control", "not run"
  std::string name;
  std::string observed;
  std::string line;
};

// What run.sh recorded of one release.
struct HazardRelease {
  Release release;
  std::string header;  // of the release, PyTorch and the machine
  std::vector<HazardCase> cases;
};

// The tables tests/data/hazards/deepspeed-*.txt, the oldest release first.
std::vector<HazardRelease> read_hazard_releases();

// What the last of `releases` does: "confirmed", "absent", "different (3.0)", "not run" or a
// mixture. A case is different where it shows another value than in the first release that confirms
// it.
std::string hazard_cell(const std::string& hazard, const std::vector<HazardRelease>& releases);

// True if a release shows the hazard.
bool is_confirmed(const std::string& hazard, const HazardRelease& release);

}  // namespace zeroproof::cli_test
