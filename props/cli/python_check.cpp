#include "props/cli/python_check.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace zeroproof {
namespace {

constexpr int kNotFound = 127;

// Runs python3 with its output in a pipe. The exit code, kNotFound where there is none.
int run_python(const std::string& path, std::string& said) {
  const char* const program =
      "import sys\n"
      "try:\n"
      "    compile(open(sys.argv[1], encoding='utf-8').read(), sys.argv[1], 'exec')\n"
      "except (SyntaxError, ValueError) as error:\n"
      "    print(f'{error}')\n"
      "    sys.exit(1)\n";
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) return kNotFound;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::array<std::string, 5> words = {"python3", "-I", "-c", program, path};
  std::array<char*, 6> arguments = {};
  for (std::size_t at = 0; at < words.size(); ++at) arguments[at] = words[at].data();
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "python3", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::array<char, 256> bytes = {};
  for (ssize_t got = 0; failed == 0 && (got = read(ends[0], bytes.data(), bytes.size())) > 0;)
    said.append(bytes.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child) return kNotFound;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kNotFound;
}

}  // namespace

std::optional<std::string> python_complaint(const std::string& path, bool& is_checked) {
  std::string said;
  const int code = run_python(path, said);
  is_checked = code != kNotFound;
  if (code == 0 || !is_checked) return std::nullopt;
  return said.substr(0, said.find('\n'));
}

}  // namespace zeroproof
