#pragma once

#include "props/zero_epilogue.h"
#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof {

// The finding that the events make: words, token and file.
ZeroEpilogueFinding finding_of(const zero_epilogue::Settings& settings,
                               const zero_epilogue::Counterexample& example);

// The same, minimised first when that was asked for.
ZeroEpilogueFinding minimized_finding(const zero_epilogue::Settings& settings,
                                      const zero_epilogue::Counterexample& example,
                                      const ZeroEpilogueOptions& options);

}  // namespace zeroproof
