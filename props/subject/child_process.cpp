#include "props/subject/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <span>

namespace zeroproof::subject {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLookMs = 50;                   // how often a waiting caller looks around
constexpr std::size_t kLineMax = 64U << 20U;  // more is no line of any protocol
constexpr std::size_t kErrorLines = 20;       // that are kept
constexpr std::size_t kErrorLineMax = 2'000;  // of each

void close_end(int& end) {
  if (end >= 0) ::close(end);
  end = -1;
}

// Pipes to stdin, stdout and stderr of a child: ours, and the child's.
struct Pipes {
  std::array<int, 3> ours = {-1, -1, -1};
  std::array<int, 3> theirs = {-1, -1, -1};

  bool open() {
    for (std::size_t at = 0; at < ours.size(); ++at) {
      std::array<int, 2> ends = {};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
      const bool is_input = at == STDIN_FILENO;
      ours[at] = ends[is_input ? 1 : 0];
      theirs[at] = ends[is_input ? 0 : 1];
      ::fcntl(ours[at], F_SETFL, O_NONBLOCK);
    }
    return true;
  }
  void close_all(std::array<int, 3>& ends) {
    for (int& end : ends) close_end(end);
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  const auto is_replaced = [&](std::string_view entry) {
    for (const auto& [name, value] : variables)
      if (entry.starts_with(name + "=")) return true;
    return false;
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_replaced(*entry)) all.emplace_back(*entry);
  for (const auto& [name, value] : variables) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// 0, or the error's number.
int spawn(std::vector<std::string> words, std::vector<std::string> environment, const Pipes& pipes,
          int& process) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (std::size_t at = 0; at < pipes.theirs.size(); ++at)
    posix_spawn_file_actions_adddup2(&actions, pipes.theirs[at], static_cast<int>(at));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> variables = pointers_to(environment);
  const int failed = ::posix_spawnp(&process, words.front().c_str(), &actions, &attributes,
                                    arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(
    const std::vector<std::string>& words,
    const std::vector<std::pair<std::string, std::string>>& variables) {
  Pipes pipes;
  int process = -1;
  const int failed =
      pipes.open() ? spawn(words, environment_with(variables), pipes, process) : errno;
  pipes.close_all(pipes.theirs);
  if (failed != 0) {
    pipes.close_all(pipes.ours);
    return fail(ErrorCode::cannot_run,
                fmt::format("{}: cannot be started: {}", words.front(), std::strerror(failed)));
  }
  return std::make_unique<ChildProcess>(process, pipes.ours);
}

// Its children are of its group, and some of them may outlive it.
ChildProcess::~ChildProcess() {
  ::kill(-process_, SIGKILL);
  for (int& end : ends_) close_end(end);
  while (!is_reaped_ && ::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
  }
}

ChildProcess::Outcome ChildProcess::ask(std::string_view line, const Patience& patience,
                                        std::string& answer) {
  to_send_ += line;
  to_send_ += '\n';
  return wait_for_line(patience, answer);
}

ChildProcess::Outcome ChildProcess::next_line(const Patience& patience, std::string& answer) {
  return wait_for_line(patience, answer);
}

ChildProcess::Outcome ChildProcess::wait_for_line(const Patience& patience, std::string& answer) {
  const auto end = Clock::now() + std::chrono::nanoseconds(patience.limit_ns);
  while (!take_line(answer)) {
    if (patience.should_stop && patience.should_stop()) return Outcome::stopped;
    if (Clock::now() > end) return Outcome::late;
    // What it wrote before its end is there to be read: its children may hold the pipe open.
    if (has_ended()) {
      look(0);
      return take_line(answer) ? Outcome::line : Outcome::ended;
    }
    look(kLookMs);
  }
  return Outcome::line;
}

bool ChildProcess::take_line(std::string& answer) {
  std::size_t end = output_.find('\n');
  if (end == std::string::npos && output_.size() < kLineMax) return false;
  end = std::min(end, kLineMax);
  answer = output_.substr(0, end);
  output_.erase(0, end + 1);
  return true;
}

// Sends and receives what is possible now, or within so many milliseconds.
void ChildProcess::look(int wait_ms) {
  std::array<pollfd, 3> polled = {};
  for (std::size_t at = 0; at < polled.size(); ++at)
    polled[at] = {.fd = ends_[at], .events = POLLIN, .revents = 0};
  polled[0].events = POLLOUT;
  if (to_send_.empty()) polled[0].fd = -1;
  if (::poll(polled.data(), polled.size(), wait_ms) <= 0) return;
  if (polled[0].revents != 0) send();
  if (polled[1].revents != 0 && !receive(ends_[1], output_)) close_end(ends_[1]);
  if (polled[2].revents != 0 && !receive(ends_[2], errors_)) close_end(ends_[2]);
  keep_last_errors();
  if (ends_[1] < 0 && wait_ms > 0) ::usleep(static_cast<useconds_t>(wait_ms) * 1'000);
}

void ChildProcess::send() {
  const ssize_t sent = ::write(ends_[0], to_send_.data(), to_send_.size());
  if (sent > 0) to_send_.erase(0, static_cast<std::size_t>(sent));
  // A reader that stopped has ended, or will be late.
  if (sent < 0 && errno != EAGAIN && errno != EINTR) to_send_.clear();
}

// All that is there. False: there will be no more.
bool ChildProcess::receive(int end, std::string& buffer) {
  std::array<char, 65536> piece = {};
  while (buffer.size() <= kLineMax) {
    const ssize_t got = ::read(end, piece.data(), piece.size());
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    buffer.append(piece.data(), static_cast<std::size_t>(got));
  }
  return true;
}

void ChildProcess::keep_last_errors() {
  for (std::size_t end = 0; (end = errors_.find('\n')) != std::string::npos;) {
    error_lines_.push_back(errors_.substr(0, std::min(end, kErrorLineMax)));
    errors_.erase(0, end + 1);
    if (error_lines_.size() > kErrorLines) error_lines_.pop_front();
  }
  if (errors_.size() > kErrorLineMax) errors_.resize(kErrorLineMax);
}

bool ChildProcess::has_ended() {
  if (!is_reaped_) is_reaped_ = ::waitpid(process_, &status_, WNOHANG) == process_;
  return is_reaped_;
}

std::string ChildProcess::state() const {
  if (!is_reaped_) return "runs";
  if (WIFEXITED(status_)) return fmt::format("exit code {}", WEXITSTATUS(status_));
  return fmt::format("signal {} ({})", WTERMSIG(status_), ::strsignal(WTERMSIG(status_)));
}

int ChildProcess::exit_code() const {
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

std::vector<std::string> ChildProcess::last_errors() const {
  std::vector<std::string> lines(error_lines_.begin(), error_lines_.end());
  if (!errors_.empty()) lines.push_back(errors_);
  return lines;
}

Result<CommandOutput> run_to_end(const std::vector<std::string>& words,
                                 const std::vector<std::pair<std::string, std::string>>& variables,
                                 const Patience& patience) {
  const auto child = ChildProcess::start(words, variables);
  if (!child) return tl::unexpected(child.error());
  CommandOutput output;
  std::string line;
  while (true) {
    const auto outcome = (*child)->next_line(patience, line);
    if (outcome == ChildProcess::Outcome::line)
      output.text += line + "\n";
    else if (outcome == ChildProcess::Outcome::ended)
      break;
    else
      return fail(ErrorCode::cannot_run, fmt::format("{}: did not end in time", words.front()));
  }
  output.exit_code = (*child)->exit_code();
  output.errors = (*child)->last_errors();
  return output;
}

}  // namespace zeroproof::subject
