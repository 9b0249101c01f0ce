// The fenced blocks of a page in Markdown.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace zeroproof::cli_test {

struct Block {
  std::string language;
  std::string text;
};

inline std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  std::istringstream text(page);
  bool is_inside = false;
  for (std::string line; std::getline(text, line);) {
    const bool is_fence = line.starts_with("```");
    if (is_fence && !is_inside) blocks.push_back({line.substr(3), ""});
    if (is_fence) is_inside = !is_inside;
    if (!is_fence && is_inside) blocks.back().text += line + "\n";
  }
  return blocks;
}

}  // namespace zeroproof::cli_test
