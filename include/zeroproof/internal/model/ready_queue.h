#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

// Rule Q2: ties come out in the order of libstdc++'s binary heap, and no other library promises it.
#ifndef __GLIBCXX__
#error "the order of equal ready tasks is libstdc++'s: build with it"
#endif

namespace zeroproof {

// What decides when a ready task leaves its queue, most urgent = greatest (rule Q1).
struct ReadyPriority {
  std::int32_t reentrant_depth = 0;
  std::uint64_t sequence_nr = 0;

  // Of a task that ends the loop of a device thread.
  static constexpr ReadyPriority shutdown() { return {kMaxDepth, 0}; }
  // Of an empty task, which only makes a waiting thread look again.
  static constexpr ReadyPriority wake_up() { return {kMaxDepth - 1, 0}; }
  // Of a node whose graph task no longer exists: it surfaces at once, to be dropped.
  static constexpr ReadyPriority orphan(std::uint64_t sequence_nr) {
    return {kMaxDepth - 2, sequence_nr};
  }

  friend constexpr auto operator<=>(const ReadyPriority&, const ReadyPriority&) = default;

 private:
  static constexpr std::int32_t kMaxDepth = std::numeric_limits<std::int32_t>::max();
};

// A task gives its priority whenever it is compared, not once: a node becomes an orphan while it
// waits, and what is compared after that sees it (as upstream's weak reference does).
template <class T>
concept ReadyTask = std::movable<T> && requires(const T& task) {
  { task.priority() } -> std::same_as<ReadyPriority>;
};

// The ready queue of one device or caller thread (rules Q1 to Q4). Not thread-safe.
template <ReadyTask Task>
class ReadyQueue {
 public:
  void push(Task task) {
    heap_.push_back(std::move(task));
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  // The most urgent task; the queue must not be empty.
  Task pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    Task task = std::move(heap_.back());
    heap_.pop_back();
    return task;
  }

  // Valid until the next push or pop; the queue must not be empty.
  const Task& top() const { return heap_.front(); }

  // Whatever is at a place below size(), and taking it away: for orders other than this queue's.
  const Task& at(std::size_t place) const { return heap_[place]; }
  Task take(std::size_t place) {
    std::swap(heap_[place], heap_.back());
    Task task = std::move(heap_.back());
    heap_.pop_back();
    std::make_heap(heap_.begin(), heap_.end(), Later{});
    return task;
  }

  bool is_empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

 private:
  struct Later {
    bool operator()(const Task& a, const Task& b) const { return a.priority() < b.priority(); }
  };

  std::vector<Task> heap_;
};

}  // namespace zeroproof
