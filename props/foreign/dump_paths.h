#pragma once

#include <string>
#include <vector>

namespace zeroproof {

// The dumps among the files that a word names: the file itself, or those of a folder and below,
// recognised by content, in the order of their names. Unreadable files are left out. Of a folder
// only files are looked at whose names may be dumps (*.json, *.pickle, *.pkl, gzip or not, or no
// dot at all), and not our own *.perfetto.json.
std::vector<std::string> dump_paths(const std::string& word);

}  // namespace zeroproof
