#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace zeroproof {

// Work of a rank on a thread of its own, for what takes as long as a disk needs; the rank's thread
// looks after it meanwhile.
class SideWork {
 public:
  // What the work can ask of its rank.
  struct Side {
    // Waits until the rank says release().
    std::function<void()> barrier;
    // Runs this on the rank's thread, which alone may touch its tensors.
    std::function<void(const std::function<void()>&)> on_rank;
  };
  using Work = std::function<void(const Side&)>;
  enum class Progress { working, at_barrier, done };

  // Starts it; null: it is done already. `work` must outlive this.
  explicit SideWork(const Work& work);
  ~SideWork();  // a work that waits for its rank ends; one that does not is waited for
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  // Of the rank: does what the work asks for, and says where the work is when it is not working any
  // more, or after a moment. Throws what the work threw.
  Progress wait_a_moment();
  void release();

 private:
  using Request = std::function<void()>;

  void run(const Work& work);
  void wait_at_barrier();
  void run_on_rank(const Request& request);
  void serve(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  Progress now_;
  bool is_abandoned_ = false;
  std::exception_ptr error_;
  const Request* request_ = nullptr;  // of the work, not served yet
  std::exception_ptr request_error_;
  std::jthread thread_;
};

}  // namespace zeroproof
