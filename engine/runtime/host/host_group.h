#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/host/host_stream.h"
#include "engine/runtime/host/rendezvous.h"
#include "engine/runtime/process_group.h"

namespace zeroproof::host {

struct GroupMembers {
  GroupKind kind = GroupKind::data;
  std::vector<int> ranks;  // of the world
  int rank = 0;            // of the owner, within the group
};

// One rank's end of a group. A collective is done when its call returns, so ranks that share
// several groups have to use them in one order too. `log` must outlive it.
class HostGroup final : public ProcessGroup {
 public:
  HostGroup(GroupMembers members, std::shared_ptr<Rendezvous> rendezvous, StreamLog& log);

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
  void wait(Work work, Stream& stream) override;
  bool is_completed(Work work) override;
  void abort(const std::string& reason) override;

  // The failure that this rank was thrown, or told with notice(); empty for none.
  const std::string& noticed() const { return noticed_; }
  void notice(const std::string& failure) { noticed_ = failure; }
  Rendezvous& rendezvous() { return *rendezvous_; }

 private:
  Work issue(Stream& stream, const Collective& collective);
  void check_root(int root) const;
  void check_issued(Work work) const;
  template <class Act>
  void noticing(Act act);

  GroupMembers members_;
  std::shared_ptr<Rendezvous> rendezvous_;
  StreamLog& log_;
  std::int64_t issued_ = 0;
  std::vector<StreamEvent> completions_;  // of each collective, when somebody observes
  std::string noticed_;
};

}  // namespace zeroproof::host
