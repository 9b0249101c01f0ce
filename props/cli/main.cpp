#include <span>

#include "props/cli/command.h"
#include "props/cli/interrupt.h"

int main(int argc, char** argv) {
  zeroproof::install_signal_handlers();
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  return static_cast<int>(zeroproof::run_command(arguments));
}
