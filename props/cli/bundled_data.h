#pragma once

#include <string>

namespace zeroproof {

// The folder of the bundled traces: $ZP_TRACES, share/zeroproof/traces beside the folder of the
// running binary, or tests/traces of the source tree it was built from. Empty when none exists.
std::string bundled_traces_folder();

// The folder of the Python package zeroproof_subject, likewise without a variable.
std::string bundled_subject_folder();
// The Python package that records jobs, with what makes environments of releases; likewise.
std::string bundled_recorder_folder();

}  // namespace zeroproof
