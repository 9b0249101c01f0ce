#pragma once

#include "props/train/case_spec.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// What a generated program does with configurations before its first window: the engines' own comes
// back from its file, and one that cannot work makes no engine. Recorded.
void read_configuration(const CaseSpec& spec, Pass& pass);

}  // namespace zeroproof::train
