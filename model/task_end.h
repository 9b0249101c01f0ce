#pragma once

#include <vector>

#include "zeroproof/internal/model/autograd_observer.h"

namespace zeroproof {

// Calls all listeners, the last that was added first, that a graph task has ended. One that throws
// keeps no other from hearing of it: the first exception passes on afterwards.
void tell_task_end(std::vector<GraphTaskListener*> listeners, GraphTaskId task, bool raised);

}  // namespace zeroproof
