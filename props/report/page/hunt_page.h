#pragma once

#include <set>
#include <string>

#include "props/report/hunt_report.h"

namespace zeroproof {

struct HuntPageWords {
  std::string program;            // how zeroproof was called
  std::string asked;              // the whole command
  std::set<std::string> scripts;  // stems of the findings that have a script STEM.py
};

// The findings of a hunt as one page: the most frequent one that is not known, with its program,
// then the others and the work. The files of a finding stand beside the page (hunt_files.h).
std::string hunt_page(const HuntDocument& document, const HuntPageWords& words);

}  // namespace zeroproof
