// How graph tasks are driven: which simulated thread runs a node next, and which node that is.
#include <algorithm>
#include <string>
#include <utility>

#include "model/check.h"
#include "zeroproof/internal/model/choice.h"
#include "zeroproof/internal/model/grad_thread.h"
#include "zeroproof/internal/model/graph_task.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

constexpr std::int32_t kReentrantDepthMax = 60;  // rule R4

std::string thread_word(const GradThread& thread) {
  constexpr std::string_view kWords[] = {"caller ", "pool ", "device "};
  const std::int32_t number =
      thread.kind == GradThreadKind::device ? thread.device.accelerator : thread.index;
  return std::string(kWords[static_cast<std::size_t>(thread.kind)]) + std::to_string(number);
}

std::vector<std::string_view> views_of(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

// FNV-1a over the choices made so far: two executions only ever share a prefix.
std::uint64_t mixed(std::uint64_t history, std::uint64_t choice) {
  return (history ^ (choice + 1)) * 0x100000001b3ULL;
}

}  // namespace

std::size_t Autograd::choose(std::string_view site, const std::vector<std::string>& options) {
  if (options.size() < 2 || !chooser_) return 0;
  const std::vector<std::string_view> words = views_of(options);
  const std::size_t choice = chooser_->choose({site, words, history_});
  history_.low = mixed(history_.low, choice);
  ++history_.high;
  return choice;
}

GradThread& Autograd::device_thread(Device device) {
  for (GradThread& thread : threads_)
    if (thread.kind == GradThreadKind::device && thread.device == device) return thread;
  GradThread& thread = threads_[static_cast<std::size_t>(add_thread())];
  thread.kind = GradThreadKind::device;
  thread.device = device;
  has_other_threads_ = true;
  return thread;
}

// Takes over the caller's queue while the caller waits (rule R4); an idle one is used again.
GradThread& Autograd::pool_thread(const GradThread& caller) {
  const auto is_idle = [](const GradThread& thread) {
    return thread.kind == GradThreadKind::pool && thread.drives == 0;
  };
  const auto at = std::find_if(threads_.begin(), threads_.end(), is_idle);
  GradThread& pool = at != threads_.end() ? *at : threads_[static_cast<std::size_t>(add_thread())];
  pool.kind = GradThreadKind::pool;
  pool.queue = caller.queue;
  return pool;
}

// Rules Q3 and Q4. Whether it went to another thread's queue.
bool Autograd::push(const std::shared_ptr<GraphTask>& task, Node& node) {
  ++task->outstanding;
  const GraphTask::Options& options = task->options();
  const bool is_for_device = !node.device().is_cpu() && options.is_multithreaded;
  GradThread::Queue& queue =
      is_for_device ? *device_thread(node.device()).queue : *options.cpu_queue;
  queue.push({task, &node, node.sequence_nr(), options.reentrant_depth});
  return &queue != thread().queue.get();
}

std::vector<GradThread*> Autograd::runnable_threads() {
  std::vector<GradThread*> runnable;
  for (GradThread& thread : threads_)
    if (thread.can_take_a_node()) runnable.push_back(&thread);
  return runnable;
}

// Rule Q6: the thread that pushed goes on unless the Chooser lets others run first.
void Autograd::let_others_run() {
  while (chooser_) {
    const std::vector<GradThread*> runnable = runnable_threads();
    std::vector<std::string> options = {thread_word(thread()) + " goes on"};
    for (const GradThread* other : runnable) options.push_back(thread_word(*other));
    const std::size_t choice = choose("grad.push", options);
    if (choice == 0) return;
    run_one(*runnable[choice - 1]);
  }
}

GradThread& Autograd::next_thread(GradThread& driver) {
  if (!has_other_threads_) return driver;
  const std::vector<GradThread*> runnable = runnable_threads();
  ZP_CHECK(!runnable.empty(), "a graph task waits for a node that no thread runs");
  std::vector<std::string> options;
  for (const GradThread* thread : runnable) options.push_back(thread_word(*thread));
  return *runnable[choose("grad.thread", options)];
}

// In the wide order model any ready node of the innermost task may come next (rule R2 stands).
NodeTask Autograd::pop(GradThread& worker) {
  GradThread::Queue& queue = *worker.queue;
  if (order_model_ == OrderModel::faithful || queue.size() < 2) return queue.pop();
  const NodeTask& top = queue.top();
  const auto task = top.task.lock();
  if (!task) return queue.pop();
  std::vector<std::size_t> places;
  std::vector<std::string> options;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    if (queue.at(i).task.lock() != task) continue;
    places.push_back(i);
    options.emplace_back(queue.at(i).node->name());
  }
  return queue.take(places[choose("grad.ready", options)]);
}

// One ready node of the thread, run there.
void Autograd::run_one(GradThread& worker) {
  ZP_CHECK(!worker.queue->is_empty(), "a graph task waits for a node that no thread runs");
  const NodeTask next = pop(worker);
  const std::shared_ptr<GraphTask> task = next.task.lock();
  if (!task || task->is_complete()) return;  // left over from a failed task (rule F1)
  const Holding running(running_, &worker);
  const NodeScope scope(worker, *task, *next.node);
  try {
    if (next.node->device().is_cpu()) {
      evaluate(task, *next.node);
    } else {
      const Holding streams(worker.streams, worker.streams);
      set_current_stream(next.node->device(), next.node->stream());
      evaluate(task, *next.node);
    }
    if (--task->outstanding == 0) finish(*task);
  } catch (const ExecutionCut&) {
    throw;
  } catch (...) {
    task->error = std::current_exception();
  }
}

// Rule R2: deeper tasks win in the queue, so on one thread this ends before anything of an outer
// task runs; with several it may not (rule R3).
void Autograd::drive(const std::shared_ptr<GraphTask>& task) {
  GradThread& caller = thread();
  const bool is_nested = caller.is_worker();
  const bool is_handed_over = is_nested && caller.nested_drives >= kReentrantDepthMax;
  GradThread& driver = is_handed_over ? pool_thread(caller) : caller;
  const bool counts_here = is_nested && !is_handed_over;
  const Holding running(running_, &driver);
  const Holding waits(driver.is_in_node, false);
  const Holding drives(driver.drives, driver.drives + 1);
  const Holding nested(driver.nested_drives, driver.nested_drives + (counts_here ? 1 : 0));
  const Holding depth(driver.total_depth, task->options().reentrant_depth);
  while (!task->is_complete()) run_one(next_thread(driver));
}

}  // namespace zeroproof
