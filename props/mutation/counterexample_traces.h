#pragma once

#include <string>
#include <vector>

#include "props/mutation/hunt.h"

namespace zeroproof::mutation {

// Runs a counterexample again, with the fault's fault or without (null), and writes what its ranks
// do: a hooktrace file a rank, named after `path` as train::rank_path() says. Returns their paths.
Result<std::vector<std::string>> write_counterexample_traces(const Counterexample& counterexample,
                                                             const Fault* fault,
                                                             const std::string& path);

}  // namespace zeroproof::mutation
