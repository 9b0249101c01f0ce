#include "props/cli/sibling.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

namespace zeroproof {
namespace {

std::string path_of(const char* sibling) {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  return (own.parent_path() / sibling).string();
}

constexpr int kLookMs = 100;  // how often a running sibling's asker looks whether it should stop

struct Child {
  pid_t process = -1;
  int output = -1;
};

std::vector<char*> arguments_of(std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return arguments;
}

// A child's ends are closed here, as ours are there.
Result<Child> start(const std::vector<std::string>& words) {
  std::array<int, 2> ends = {};
  if (::pipe(ends.data()) != 0) return fail(ErrorCode::cannot_run, "no pipe can be made");
  std::string path = path_of(kMutationProgram);
  std::vector<std::string> all = {path};
  all.insert(all.end(), words.begin(), words.end());
  const std::vector<char*> arguments = arguments_of(all);
  const pid_t process = ::fork();
  if (process == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execv(path.c_str(), arguments.data());
    ::_exit(77);
  }
  ::close(ends[1]);
  if (process < 0) {
    ::close(ends[0]);
    return fail(ErrorCode::cannot_run, "no process can be started");
  }
  return Child{process, ends[0]};
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool is_sibling_there(const char* sibling) {
  return ::access(path_of(sibling).c_str(), X_OK) == 0;
}

Error no_sibling(const char* sibling) {
  return {ErrorCode::cannot_run,
          fmt::format("the program with a mutated engine is not there: {}; the Python wheel has "
                      "none: './zp build' in the source tree builds it",
                      path_of(sibling))};
}

Error become_sibling(const char* sibling, const std::string& program,
                     const std::vector<std::string>& words) {
  const std::string path = path_of(sibling);
  std::vector<std::string> all = {program};
  all.insert(all.end(), words.begin(), words.end());
  const std::vector<char*> arguments = arguments_of(all);
  ::execv(path.c_str(), arguments.data());
  return no_sibling(sibling);
}

Result<SiblingOutput> ask_sibling(const std::vector<std::string>& words,
                                  const std::function<bool()>& should_stop) {
  if (!is_sibling_there(kMutationProgram)) return tl::unexpected(no_sibling(kMutationProgram));
  const auto child = start(words);
  if (!child) return tl::unexpected(child.error());
  SiblingOutput output;
  bool is_stopped = false;
  std::array<char, 65536> piece = {};
  while (true) {
    if (!is_stopped && should_stop && should_stop()) {
      is_stopped = true;
      ::kill(child->process, SIGINT);
    }
    pollfd look{.fd = child->output, .events = POLLIN, .revents = 0};
    if (::poll(&look, 1, kLookMs) <= 0) continue;
    const ssize_t got = ::read(child->output, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.text.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(child->output);
  output.exit_code = wait_for(child->process);
  return output;
}

}  // namespace zeroproof
