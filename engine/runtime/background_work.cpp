#include "engine/runtime/background_work.h"

#include <chrono>
#include <utility>

namespace zeroproof {
namespace {

constexpr std::chrono::milliseconds kBetweenQuestions{20};

}  // namespace

BackgroundWork::BackgroundWork(Work work, Question question)
    : thread_([this, work = std::move(work), question = std::move(question)](
                  const std::stop_token& stop) { run(work, question, stop); }) {}

BackgroundWork::~BackgroundWork() = default;  // jthread: asks the thread to stop, and joins

void BackgroundWork::run(const Work& work, const Question& question, const std::stop_token& stop) {
  try {
    work();
  } catch (...) {
    error_ = std::current_exception();
  }
  done_.set_value();
  if (error_ || !question) return;
  try {
    while (!stop.stop_requested() && !question()) std::this_thread::sleep_for(kBetweenQuestions);
  } catch (...) {
    error_ = std::current_exception();
  }
}

void BackgroundWork::wait() {
  done_.get_future().wait();
}

void BackgroundWork::stop() {
  thread_ = {};
  if (error_) std::rethrow_exception(error_);
}

}  // namespace zeroproof
