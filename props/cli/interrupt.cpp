#include "props/cli/interrupt.h"

#include <csignal>

namespace zeroproof {
namespace {

volatile std::sig_atomic_t g_was_interrupted = 0;

void note_interrupt(int) {
  g_was_interrupted = 1;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: a blocking read returns
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool was_interrupted() {
  return g_was_interrupted != 0;
}

}  // namespace zeroproof
