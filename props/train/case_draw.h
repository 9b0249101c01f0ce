#pragma once

#include <cstdint>
#include <vector>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// A valid case; a function of the seed. Two of three by swarm: the seed first decides which
// features the case may have at all, then draws within them, so that rare combinations come up by
// themselves. The third is plain but for up to three additions of case_additions.h, each pair of
// which is as likely as any other, however seldom both come by themselves.
CaseSpec draw_case(std::uint64_t seed);

// All additions there are.
std::vector<Addition> all_additions();

}  // namespace zeroproof::train
