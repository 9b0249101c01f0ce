#include "tests/tidy/function_scan.h"

#include <algorithm>
#include <array>

namespace zeroproof::tidy {
namespace {

enum class Scope { open, function, closed };  // open: namespace or class; closed: anything else

// The text between two scope changes, with the nesting that separates its parts.
struct Head {
  std::string text;
  std::size_t line = 0;  // of the first parenthesis, else of the first character
  int paren_depth = 0;
  bool has_assignment = false;
  bool has_paren = false;

  bool is_blank() const { return text.find_first_not_of(" \n") == text.npos; }
};

bool is_transparent(const Head& head) {
  if (head.has_assignment) return false;
  for (const char* word : {"namespace", "extern"}) {
    if (find_token(head.text, word) != head.text.npos) return !head.has_paren;
  }
  return std::ranges::any_of(std::array{"class", "struct", "union"}, [&](const char* word) {
    const std::size_t at = find_token(head.text, word);
    return at != head.text.npos && head.text.find('(', at) == head.text.npos;
  });
}

// Commas at the top level of the first parenthesised group, without template arguments.
std::size_t count_parameters(const std::string& head) {
  const std::size_t open = head.find('(');
  if (open == head.npos) return 0;
  int depth = 0;
  int angles = 0;
  std::size_t commas = 0;
  bool is_empty = true;
  for (std::size_t i = open; i < head.size(); ++i) {
    const char c = head[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0) break;
    if (c == '<') ++angles;
    if (c == '>' && angles > 0) --angles;
    if (c == ',' && depth == 1 && angles == 0) ++commas;
    if (i > open && c != ' ' && c != '\n') is_empty = false;
  }
  return is_empty ? 0 : commas + 1;
}

class Scanner {
 public:
  std::vector<FunctionSpan> run(const SourceFile& file) {
    bool is_continued = false;
    for (line_ = 1; line_ <= file.code.size(); ++line_) {
      const std::string& code = file.code[line_ - 1];
      const std::size_t first = code.find_first_not_of(' ');
      const bool is_directive = is_continued || (first != code.npos && code[first] == '#');
      is_continued = is_directive && code.ends_with('\\');
      if (is_directive) continue;
      for (const char c : code) feed(c);
      feed('\n');
    }
    return std::move(found_);
  }

 private:
  struct Open {
    Scope scope;
    std::size_t line;
    Head head;
  };

  bool is_at_top() const {
    return std::ranges::all_of(stack_, [](const Open& o) { return o.scope == Scope::open; });
  }

  void feed(char c) {
    if (c == '{') return enter();
    if (c == '}') return leave();
    if (c == ';' && head_.paren_depth == 0) return end_declaration();
    if (c == '(' && !head_.has_paren) {
      head_.has_paren = true;
      head_.line = line_;
    }
    if (c == '(' || c == '[') ++head_.paren_depth;
    if (c == ')' || c == ']') --head_.paren_depth;
    if (c == '=' && head_.paren_depth == 0 &&
        find_token(head_.text, "operator") == std::string::npos) {
      head_.has_assignment = true;
    }
    if (head_.is_blank() && !head_.has_paren) head_.line = line_;
    head_.text.push_back(c);
  }

  void enter() {
    Scope scope = Scope::closed;
    const std::size_t first = head_.text.find_first_not_of(" \n");
    // A head that is empty or begins with a comma goes on after a member's {initialiser}.
    const bool is_tail = first == std::string::npos || head_.text[first] == ',';
    if (head_.paren_depth > 0 || !is_at_top()) {
      scope = Scope::closed;
    } else if (is_transparent(head_)) {
      scope = Scope::open;
    } else if (!head_.has_assignment && (head_.has_paren || is_tail)) {
      scope = Scope::function;
    }
    stack_.push_back({scope, line_, head_});
    head_ = {};
  }

  void leave() {
    if (stack_.empty()) return;
    const Open open = std::move(stack_.back());
    stack_.pop_back();
    head_ = {};
    if (open.scope == Scope::closed) {
      head_ = open.head;  // an initialiser inside a head: the head goes on
      return;
    }
    if (open.scope != Scope::function) return;
    const bool is_head = open.head.has_paren;
    found_.push_back({.first_line = is_head ? open.head.line : open.line,
                      .line_count = line_ - open.line + 1,
                      .parameter_count = count_parameters(open.head.text)});
  }

  void end_declaration() {
    if (is_at_top() && head_.has_paren && !head_.has_assignment) {
      found_.push_back({.first_line = head_.line,
                        .line_count = 0,
                        .parameter_count = count_parameters(head_.text)});
    }
    head_ = {};
  }

  std::size_t line_ = 0;
  Head head_;
  std::vector<Open> stack_;
  std::vector<FunctionSpan> found_;
};

}  // namespace

std::vector<FunctionSpan> scan_functions(const SourceFile& file) {
  return Scanner().run(file);
}

}  // namespace zeroproof::tidy
