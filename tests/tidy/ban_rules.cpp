#include <algorithm>

#include "tests/tidy/rules.h"

namespace zeroproof::tidy {
namespace {

struct Ban {
  std::string_view rule;
  std::vector<std::string_view> tokens;
  std::vector<std::string_view> folders;
  std::vector<std::string_view> except;
  std::string_view instead;
};

const std::vector<Ban>& bans() {
  static const std::vector<Ban> kBans = {
      {"ban",
       {"<thread>", "<mutex>", "<shared_mutex>", "<condition_variable>", "<future>", "<atomic>",
        "<semaphore>", "<stop_token>", "<pthread.h>", "thread_local"},
       {"model/", "engine/", "sim/"},
       {"engine/runtime/"},
       "one thread of control below props; a parallel search states its file in allowances.txt"},
      {"ban",
       {"<chrono>", "<ctime>", "<time.h>", "clock_gettime", "gettimeofday"},
       {"model/", "engine/", "sim/"},
       {"engine/runtime/"},
       "time comes from the seam, never from a clock"},
      {"ban",
       {"random_device", "rand", "srand", "mt19937", "default_random_engine"},
       {"model/", "engine/", "sim/", "props/"},
       {},
       "numbers come from the seed, through Chooser"},
      {"ban",
       {"unordered_map", "unordered_set", "unordered_multimap", "unordered_multiset"},
       {"model/", "engine/", "sim/", "props/"},
       {},
       "hash order must not reach an output: use an ordered container"},
      {"ban",
       {"<iostream>", "<fstream>", "<sstream>", "printf", "fprintf", "puts", "fputs"},
       {"model/", "engine/", "sim/"},
       {"sim/trace/"},
       "the library layers return values and emit events; they do not print"},
      {"ban",
       {"<iostream>", "printf", "puts"},
       {"props/"},
       {"props/cli/", "props/report/"},
       "only props/cli and props/report write to the user"},
      {"ban",
       {"getenv", "setlocale", "<filesystem>"},
       {"model/", "engine/"},
       {"engine/runtime/", "engine/files/"},
       "the environment and the file system are not visible from here"},
      {"ban",
       {"getenv", "setlocale"},
       {"sim/", "props/"},
       {"props/cli/"},
       "settings come in as arguments"},
      {"ban",
       {"<format>", "<expected>", "<source_location>", "std::views", "ranges::unique",
        "ranges::rotate", "ranges::subrange"},
       {"model/", "engine/", "sim/", "props/", "tests/", "bench/"},
       {},
       "clang 14 cannot compile it: fmt, tl::expected, plain loops"},
      {"memory",
       {"malloc", "calloc", "realloc", "new", "delete[]"},
       {"model/", "engine/", "sim/", "props/"},
       {"engine/runtime/"},
       "ownership is a value, a container or a unique_ptr"},
  };
  return kBans;
}

bool starts_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return text.starts_with(prefix); });
}

void check_line(const SourceFile& file, std::size_t index, Findings& findings) {
  // The name in an #include is searched as written, everything else without its literals.
  const std::string include = include_of(file, index);
  const std::string_view text = include.empty() ? std::string_view(file.code[index]) : include;
  for (const Ban& ban : bans()) {
    if (!starts_with_any(file.place(), ban.folders) || starts_with_any(file.place(), ban.except))
      continue;
    if (ban.rule == "memory" && !include.empty()) continue;  // <new> declares, it does not allocate
    for (const std::string_view token : ban.tokens) {
      if (find_token(text, token) == text.npos) continue;
      std::string detail(token);
      detail.append(": ").append(ban.instead);
      findings.push_back({file.path, index + 1, std::string(ban.rule), std::move(detail)});
    }
  }
}

}  // namespace

Findings check_bans(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) check_line(file, i, findings);
  }
  return findings;
}

}  // namespace zeroproof::tidy
