#pragma once

#include <memory>
#include <string>

#include "sim/protocol/program.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof {

// Yields the nodes of one graph task in a legal order. Not thread-safe; the program and the
// graph must outlive it.
class TaskSchedule {
 public:
  virtual ~TaskSchedule() = default;

  virtual bool is_done() const = 0;

  // Picks the next node. `ask` is called where several are legal: it gets their ids and returns
  // the index of one.
  template <class Ask>
  std::size_t next(const Ask& ask) {
    const std::vector<std::size_t> ready = ready_nodes();
    const std::size_t pick = ready.size() == 1 ? 0 : ask(ready);
    run(ready[pick]);
    return ready[pick];
  }

  // What is left to run, for fingerprints.
  virtual void append_state(std::string& bytes) const = 0;

 protected:
  virtual std::vector<std::size_t> ready_nodes() const = 0;
  virtual void run(std::size_t node) = 0;
};

std::unique_ptr<TaskSchedule> make_task_schedule(const GraphTaskProgram& task,
                                                 OrderModel order_model);

}  // namespace zeroproof
