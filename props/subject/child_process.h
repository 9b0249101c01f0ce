#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof::subject {

// How long to wait for a process, and when to give up earlier.
struct Patience {
  std::int64_t limit_ns = 0;
  std::function<bool()> should_stop = {};
};

// A program that runs beside this process and is spoken to in lines. It and its children are a
// process group of their own, which Ctrl-C does not reach; all of them are killed with the object.
// Not thread-safe.
class ChildProcess {
 public:
  // `words` begins with the program, which is looked for in PATH; `variables` join the
  // environment. Code cannot_run.
  static Result<std::unique_ptr<ChildProcess>> start(
      const std::vector<std::string>& words,
      const std::vector<std::pair<std::string, std::string>>& variables);
  // Of one that runs: its number, and our ends of its stdin, stdout and stderr.
  ChildProcess(int process, std::array<int, 3> ends) : process_(process), ends_(ends) {}
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  enum class Outcome : std::uint8_t { line, ended, late, stopped };
  // Writes a line, then waits for the next one of its stdout, which comes without its end.
  Outcome ask(std::string_view line, const Patience& patience, std::string& answer);
  // Waits for the next line only.
  Outcome next_line(const Patience& patience, std::string& answer);

  // "exit code 1", "signal 11"; "runs" while it does.
  std::string state() const;
  int exit_code() const;  // after its end; 128 and the signal where one ended it
  // The last lines of its stderr.
  std::vector<std::string> last_errors() const;

 private:
  Outcome wait_for_line(const Patience& patience, std::string& answer);
  bool take_line(std::string& answer);
  void look(int wait_ms);
  void send();
  bool receive(int end, std::string& buffer);
  void keep_last_errors();
  bool has_ended();

  int process_;
  std::array<int, 3> ends_;  // of its stdin, stdout, stderr; -1: closed
  std::string to_send_;
  std::string output_;
  std::string errors_;  // an unfinished line
  std::deque<std::string> error_lines_;
  bool is_reaped_ = false;
  int status_ = 0;
};

struct CommandOutput {
  int exit_code = 0;
  std::string text;                 // of stdout
  std::vector<std::string> errors;  // the last lines of stderr
};

// Runs a program to its end. An error where it could not start, or did not end in time.
Result<CommandOutput> run_to_end(const std::vector<std::string>& words,
                                 const std::vector<std::pair<std::string, std::string>>& variables,
                                 const Patience& patience);

}  // namespace zeroproof::subject
