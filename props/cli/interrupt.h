#pragma once

namespace zeroproof {

// From here on SIGINT and SIGTERM only set a flag, so that the verb can write what it has. A
// second one, seconds later, ends the process at once. Writing to a closed pipe is an error, not
// a signal.
void install_signal_handlers();

bool was_interrupted();

}  // namespace zeroproof
