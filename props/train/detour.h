#pragma once

#include "props/train/case_detours.h"
#include "props/train/case_spec.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// The detour of a micro-batch where this is its place, otherwise nothing; the same text for engines
// and baseline. One in a context enters that, too. All ranks call.
void take_detour_at(const CaseSpec& spec, Pass& pass, const MicroSpec& micro, DetourPlace place);

}  // namespace zeroproof::train
