#pragma once

#include "props/program/state.h"

namespace zeroproof::program {

// Whether the backward of that loss of the graph brings its forward's spike to a gradient that a
// step looks at: what no parameter group lists is none.
bool brings_spike(const Model& model, const Graph& graph, int loss);

}  // namespace zeroproof::program
