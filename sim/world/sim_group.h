#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/host/collective_group.h"
#include "sim/world/meeting.h"
#include "sim/world/sim_stream.h"

namespace zeroproof::sim {

// One rank's end of a group: a call queues the collective and returns, as NCCL's do.
class SimGroup final : public host::CollectiveGroup {
 public:
  // `streams` must outlive it.
  SimGroup(host::GroupMembers members, std::shared_ptr<MeetingPoint> point, SimStreams& streams);

  bool compares_contents() const override { return true; }
  void announce(std::span<const ContentPart> parts) override {
    content_.assign(parts.begin(), parts.end());
  }
  void begin_batch() override {}
  void end_batch() override {}
  void wait(Work work, Stream& stream) override;
  bool is_completed(Work work) override;
  void abort(const std::string& reason) override;

  std::optional<std::string> failure() override;
  MeetingPoint& point() { return *point_; }

 private:
  Work issue(Stream& stream, const host::Collective& collective) override;
  void raise_if_failed();
  StreamEvent completion(Work work) const;

  std::shared_ptr<MeetingPoint> point_;
  SimStreams& streams_;
  std::vector<StreamEvent> completions_;  // of each collective
  std::vector<ContentPart> content_;      // of the next collective
};

}  // namespace zeroproof::sim
