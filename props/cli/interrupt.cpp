#include "props/cli/interrupt.h"

#include <csignal>
#include <ctime>

#include "sim/trace/byte_source.h"

namespace zeroproof {
namespace {

volatile std::sig_atomic_t g_was_interrupted = 0;
volatile std::sig_atomic_t g_first_second = 0;

std::sig_atomic_t second_now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::sig_atomic_t>(now.tv_sec);
}

// Some callers (timeout, process groups) send one interrupt twice: only a later one is impatience.
void note_interrupt(int signal) {
  const std::sig_atomic_t second = second_now();
  if (g_was_interrupted == 0) {
    g_was_interrupted = 1;
    g_first_second = second;
  } else if (second - g_first_second > 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;  // without SA_RESTART: a blocking read returns
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  set_read_stop(was_interrupted);
}

bool was_interrupted() {
  return g_was_interrupted != 0;
}

}  // namespace zeroproof
