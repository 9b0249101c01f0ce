#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every sixth case, from a stream of its own and as far as it fits: saves, loads, zero_grad and
// questions inside contexts, blocks and forwards; misuses of stage 3; loss scales between a forward
// and its backward.
Additions detour_additions();

// Why a case cannot be so; empty: it can.
std::string detour_problem(const CaseSpec& spec);
std::string stage3_misuse_problem(const CaseSpec& spec, Misuse misuse);

// Where the user takes it; those of forwards are behind a call.
enum class DetourPlace : std::uint8_t { context, block, forward };

inline DetourPlace place_of(const MicroSpec& micro) {
  return micro.detour_at > 1 ? DetourPlace::forward : static_cast<DetourPlace>(micro.detour_at);
}

// The user changes weights, and no masters: until a step or a load makes them anew.
inline bool changes_weights(const MicroSpec& micro) {
  const auto gathers = static_cast<Gathers>(micro.gathers);
  return gathers == Gathers::first_changes || gathers == Gathers::last_changes ||
         gathers == Gathers::changes_and_runs;
}

}  // namespace zeroproof::train
