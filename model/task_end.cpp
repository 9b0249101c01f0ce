#include "model/task_end.h"

#include <exception>

#include "zeroproof/internal/model/choice.h"

namespace zeroproof {

void tell_task_end(std::vector<GraphTaskListener*> listeners, GraphTaskId task, bool raised) {
  std::exception_ptr first;
  for (auto at = listeners.rbegin(); at != listeners.rend(); ++at) {
    try {
      (*at)->on_graph_task_end(task, raised);
    } catch (const ExecutionCut&) {
      throw;  // this execution will not be looked at
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace zeroproof
