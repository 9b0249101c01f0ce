#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/reader.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Receives the document piece by piece; its error ends the export.
using TextSink = std::function<Result<void>(std::string_view)>;

struct PerfettoCounts {
  std::uint64_t events = 0;      // of the traces
  std::uint64_t unfinished = 0;  // slices closed by us because their end never came
};

// One reader a path, each at its header. The first that cannot be opened is the error.
Result<std::vector<TraceReader>> open_traces(const std::vector<std::string>& paths,
                                             NameTable& names);

// Writes the traces of one run, one reader a rank, as one Chrome trace-event JSON document for
// ui.perfetto.dev (docs/reference/trace_format.md section 13). `readers` stand at their headers and
// all use `names`. Memory grows with open slices and gathered parameters only.
Result<PerfettoCounts> export_perfetto(std::vector<TraceReader>& readers, const NameTable& names,
                                       const TextSink& sink);

}  // namespace zeroproof
