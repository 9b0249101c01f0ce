#pragma once

#include <exception>
#include <functional>
#include <future>
#include <stop_token>
#include <thread>

namespace zeroproof {

// Work that goes on while its owner does other things: once, then a question that is asked every
// moment until the answer is yes. Not thread-safe; work and question run on a thread of their own.
class BackgroundWork {
 public:
  using Work = std::function<void()>;
  using Question = std::function<bool()>;  // null: none

  BackgroundWork(Work work, Question question);
  ~BackgroundWork();  // as stop(), but an error is lost
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  void wait();  // until the work is done, or threw
  // Asks no more, and waits. Throws what work or question threw. Once.
  void stop();

 private:
  void run(const Work& work, const Question& question, const std::stop_token& stop);

  std::promise<void> done_;  // the work
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace zeroproof
