#pragma once

#include <string>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// Why the layers, calls, heads and lists of a case make no model; empty: they do.

// Numbers out of range, and names of layers, calls or ranks that are not there.
std::string shape_problem(const CaseSpec& spec);
// The rest needs a case without that one.
std::string layers_problem(const CaseSpec& spec);
std::string model_problem(const CaseSpec& spec);
// Two layers of which one runs, a weight that is read past its layer, frames that are skipped.
std::string structure_problem(const CaseSpec& spec);

// Whether the layer of the call has something that is trained.
bool is_trained(const CaseSpec& spec, const CallSpec& call);

}  // namespace zeroproof::train
