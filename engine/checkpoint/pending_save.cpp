#include "engine/checkpoint/pending_save.h"

#include <utility>

namespace zeroproof {

PendingSave::PendingSave(MakeFolder make, SaveOptions options, bool is_leader, Result<void> checked)
    : make_(std::move(make)), options_(std::move(options)), is_leader_(is_leader) {
  folder_ = make_(options_);
  begun_ = folder_->begin(is_leader, std::move(checked), options_.barrier);
}

PendingSave::~PendingSave() {
  writing_.reset();
  if (is_leader_ && !is_finished_) folder_->abandon();
}

// An error of write_own() stays in the folder until finish() gives it.
void PendingSave::start() {
  BackgroundWork::Question commit;
  if (is_leader_) commit = [this] { return folder_->commit_if_written(); };
  writing_.emplace([this] { (void)folder_->write_own(); }, commit);
}

// The leader's thread looks for records until all ranks have written, or failed to.
Result<void> PendingSave::finish(const CheckpointFolder::Barrier& barrier) {
  writing_->wait();
  if (barrier) barrier();
  writing_->stop();
  is_finished_ = true;
  return folder_->finish(barrier);
}

}  // namespace zeroproof
