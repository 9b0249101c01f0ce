#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/host/host_group.h"
#include "engine/runtime/process_group.h"
#include "sim/world/meeting.h"
#include "sim/world/sim_stream.h"

namespace zeroproof::sim {

// One rank's end of a group: a call queues the collective and returns, as NCCL's do.
class SimGroup final : public ProcessGroup {
 public:
  // `streams` must outlive it.
  SimGroup(host::GroupMembers members, std::shared_ptr<MeetingPoint> point, SimStreams& streams);

  GroupKind kind() const override { return members_.kind; }
  int rank() const override { return members_.rank; }
  int size() const override { return static_cast<int>(members_.ranks.size()); }
  const std::vector<int>& ranks() const override { return members_.ranks; }

  Work all_reduce(Stream& stream, Span data, ReduceOp op) override;
  Work reduce(Stream& stream, Span data, int root, ReduceOp op) override;
  Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) override;
  Work all_gather(Stream& stream, Span output, Span input) override;
  Work broadcast(Stream& stream, Span data, int root) override;
  Work barrier(Stream& stream) override;
  bool compares_contents() const override { return true; }
  void announce(std::span<const ContentPart> parts) override {
    content_.assign(parts.begin(), parts.end());
  }
  void wait(Work work, Stream& stream) override;
  bool is_completed(Work work) override;
  void abort(const std::string& reason) override;

  // The failure that this rank was thrown, or told with notice(); empty for none.
  const std::string& noticed() const { return noticed_; }
  void notice(const std::string& failure) { noticed_ = failure; }
  MeetingPoint& point() { return *point_; }

 private:
  Work issue(Stream& stream, const host::Collective& collective);
  void raise_if_failed();
  StreamEvent completion(Work work) const;

  host::GroupMembers members_;
  std::shared_ptr<MeetingPoint> point_;
  SimStreams& streams_;
  std::vector<StreamEvent> completions_;  // of each collective
  std::vector<ContentPart> content_;      // of the next collective
  std::string noticed_;
};

}  // namespace zeroproof::sim
