#pragma once

#include <string>
#include <vector>

namespace zeroproof {

// A word or flag as the help prints it: "--stage N" and a text without line breaks.
struct HelpRow {
  std::string name;
  std::string text;
};

// Rows under a heading, in the order of their declaration.
struct HelpGroup {
  std::string heading;
  std::vector<HelpRow> rows;
};

struct HelpPage {
  std::string usage;
  std::string summary;
  std::vector<HelpGroup> groups;
  std::string examples;  // whole lines

  // The group of this heading; a new one goes to the end.
  HelpGroup& group(const std::string& heading);
};

// The page in at most 80 columns, except for an example that is longer. Groups without rows are
// left out.
std::string help_text(const HelpPage& page);

}  // namespace zeroproof
