#include "engine/checkpoint/pending_save.h"

#include <chrono>
#include <utility>

namespace zeroproof {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{20};  // for the records of the other ranks

}  // namespace

PendingSave::PendingSave(MakeFolder make, SaveOptions options, bool is_leader, Result<void> checked)
    : make_(std::move(make)), options_(std::move(options)), is_leader_(is_leader) {
  folder_ = make_(options_);
  begun_ = folder_->begin(is_leader, std::move(checked), options_.barrier);
}

PendingSave::~PendingSave() {
  thread_ = {};
  if (is_leader_ && !is_finished_) folder_->abandon();
}

void PendingSave::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void PendingSave::run(const std::stop_token& stop) {
  try {
    (void)folder_->write_own();  // finish() says how it went
  } catch (...) {
    error_ = std::current_exception();
  }
  written_.set_value();
  if (is_leader_ && !error_) commit_when_written(stop);
}

void PendingSave::commit_when_written(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested() && !folder_->commit_if_written())
      std::this_thread::sleep_for(kBetweenLooks);
  } catch (...) {
    error_ = std::current_exception();
  }
}

// The leader's thread looks for records until all ranks have written, or failed to.
Result<void> PendingSave::finish(const CheckpointFolder::Barrier& barrier) {
  written_.get_future().wait();
  if (barrier) barrier();
  thread_ = {};
  is_finished_ = true;
  if (error_) std::rethrow_exception(error_);
  return folder_->finish(barrier);
}

}  // namespace zeroproof
