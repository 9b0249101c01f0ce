#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace zeroproof {

// Every byte of a file; empty where there is none.
inline std::string read_file(const std::filesystem::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace zeroproof
