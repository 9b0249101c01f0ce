#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>

namespace zeroproof {

// A process beside the test's that runs `body` and ends with what it gives, or 99 after an
// exception; killed with the object.
class Forked {
 public:
  template <class Body>
  explicit Forked(Body body) : process_(::fork()) {
    if (process_ != 0) return;
    int code = kThrew;
    try {
      code = body();
    } catch (const std::exception&) {
    }
    ::_exit(code);
  }
  ~Forked() {
    if (process_ > 0) kill();
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  static constexpr int kThrew = 99;

  int exit_code() {
    const int status = reap(0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Without a wait.
  bool has_ended() { return process_ <= 0 || reap(WNOHANG) != kRunning; }
  pid_t process() const { return process_; }
  void kill() {
    ::kill(process_, SIGKILL);
    reap(0);
  }

 private:
  static constexpr int kRunning = -1;

  int reap(int flags) {
    int status = 0;
    if (::waitpid(process_, &status, flags) != process_) return kRunning;
    process_ = 0;
    return status;
  }

  pid_t process_;
};

}  // namespace zeroproof
