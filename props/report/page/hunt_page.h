#pragma once

#include <string>

#include "props/report/hunt_report.h"

namespace zeroproof {

// What a hunt found as one page: the most frequent finding that is not known with its program, the
// others, the work. The files of a finding stand beside the page (hunt_files.h). `program` is how
// zeroproof was called, `asked` the whole command.
std::string hunt_page(const HuntDocument& document, const std::string& program,
                      const std::string& asked);

}  // namespace zeroproof
