#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/host/collective_group.h"
#include "engine/runtime/host/rendezvous.h"

namespace zeroproof::host {

// One rank's end of a group. A collective is done when its call returns, so ranks that share
// several groups have to use them in one order too. `log` must outlive it.
class HostGroup final : public CollectiveGroup {
 public:
  HostGroup(GroupMembers members, std::shared_ptr<Rendezvous> rendezvous, StreamLog& log);

  bool compares_contents() const override { return false; }
  void announce(std::span<const ContentPart>) override {}
  void begin_batch() override {}
  void end_batch() override {}
  void wait(Work work, Stream& stream) override;
  bool is_completed(Work work) override;
  void abort(const std::string& reason) override;

  std::optional<std::string> failure() override { return rendezvous_->failure(); }
  Rendezvous& rendezvous() { return *rendezvous_; }

 private:
  Work issue(Stream& stream, const Collective& collective) override;
  void check_issued(Work work) const;
  template <class Act>
  void noticing(Act act);

  std::shared_ptr<Rendezvous> rendezvous_;
  std::int64_t issued_ = 0;
  std::vector<StreamEvent> completions_;  // of each collective, when somebody observes
};

}  // namespace zeroproof::host
