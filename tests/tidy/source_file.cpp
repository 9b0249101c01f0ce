#include "tests/tidy/source_file.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>

namespace zeroproof::tidy {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Blanks comments and literals in place, so that columns and line ends survive.
class Blanker {
 public:
  explicit Blanker(std::string text) : text_(std::move(text)) {}

  std::string run() {
    while (at_ < text_.size()) step();
    return std::move(text_);
  }

 private:
  void step() {
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (rest.starts_with("//")) {
      blank_to(text_.find('\n', at_));
    } else if (rest.starts_with("/*")) {
      blank_past("*/", 2);
    } else if (rest.starts_with("R\"") && !(at_ > 0 && is_word(text_[at_ - 1]))) {
      const std::size_t open = text_.find('(', at_);
      blank_past(")" + text_.substr(at_ + 2, open - at_ - 2) + "\"", open - at_);
    } else if (rest[0] == '"' || (rest[0] == '\'' && !is_digit_separator())) {
      blank_literal();
    } else {
      ++at_;
    }
  }

  bool is_digit_separator() const {
    std::size_t start = at_;
    while (start > 0 && (is_word(text_[start - 1]) || text_[start - 1] == '\'')) --start;
    return start < at_ && std::isdigit(static_cast<unsigned char>(text_[start])) != 0;
  }

  void blank_literal() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != text_[at_] && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    blank_to(end + 1);
  }

  void blank_past(const std::string& terminator, std::size_t skip) {
    const std::size_t end = text_.find(terminator, at_ + skip);
    blank_to(end == std::string::npos ? end : end + terminator.size());
  }

  void blank_to(std::size_t end) {
    end = std::min(end, text_.size());
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n') text_[at_] = ' ';
    }
  }

  std::string text_;
  std::size_t at_ = 0;
};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string_view SourceFile::place_of(std::string_view path) {
  for (const std::string_view prefix : {"include/", "zeroproof/", "internal/"})
    if (path.starts_with(prefix)) path.remove_prefix(prefix.size());
  return path;
}

std::string path_of_include(std::string_view name) {
  return (name.starts_with("zeroproof/") ? "include/" : "") + std::string(name);
}

SourceFile parse_source(std::string path, std::string_view text) {
  return {.path = std::move(path),
          .lines = split_lines(text),
          .code = split_lines(Blanker(std::string(text)).run()),
          .ends_with_newline = text.empty() || text.back() == '\n'};
}

std::vector<SourceFile> load_tree(const std::filesystem::path& root) {
  std::vector<SourceFile> files;
  constexpr const char* kFolders[] = {"model", "engine", "sim",      "props",
                                      "tests", "bench",  "examples", "include"};
  for (const char* folder : kFolders) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      files.push_back(parse_source(entry.path().lexically_relative(root).generic_string(), text));
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

std::size_t find_token(std::string_view line, std::string_view token) {
  for (std::size_t at = line.find(token); at != line.npos; at = line.find(token, at + 1)) {
    const std::size_t end = at + token.size();
    const bool is_cut_left = at > 0 && is_word(line[at - 1]) && is_word(token.front());
    const bool is_cut_right = end < line.size() && is_word(line[end]) && is_word(token.back());
    if (!is_cut_left && !is_cut_right) return at;
  }
  return line.npos;
}

std::string include_of(const SourceFile& file, std::size_t index) {
  constexpr std::string_view kInclude = "#include ";
  if (!file.code[index].starts_with(kInclude)) return {};
  const std::string_view name = std::string_view(file.lines[index]).substr(kInclude.size());
  const std::size_t end = name.find_first_of(">\"", 1);
  return std::string(name.substr(0, end == name.npos ? end : end + 1));
}

}  // namespace zeroproof::tidy
