#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/runtime/host/collective.h"
#include "engine/runtime/host/host_stream.h"
#include "zeroproof/internal/engine/runtime/process_group.h"

namespace zeroproof::host {

struct GroupMembers {
  GroupKind kind = GroupKind::data;
  std::vector<int> ranks;  // of the world
  int rank = 0;            // of the owner, within the group
};

// One rank's end of a group whose collectives this process does itself, on the host runtime or in
// the simulator: every call becomes a Collective, checked and noted alike. `log` must outlive it.
class CollectiveGroup : public ProcessGroup {
 public:
  CollectiveGroup(GroupMembers members, StreamLog& log) : log_(log), members_(std::move(members)) {}

  GroupKind kind() const final { return members_.kind; }
  int rank() const final { return members_.rank; }
  int size() const final { return static_cast<int>(members_.ranks.size()); }
  const std::vector<int>& ranks() const final { return members_.ranks; }

  Work all_reduce(Stream& stream, Span data, ReduceOp op) final;
  Work reduce(Stream& stream, Span data, int root, ReduceOp op) final;
  Work reduce_scatter(Stream& stream, Span output, Span input, ReduceOp op) final;
  Work all_gather(Stream& stream, Span output, Span input) final;
  Work broadcast(Stream& stream, Span data, int root) final;
  Work barrier(Stream& stream) final;

  // Why the group works no more; none while it does.
  virtual std::optional<std::string> failure() = 0;
  // The failure that this rank was thrown, or heard by notice(); empty for none.
  const std::string& noticed() const { return noticed_; }
  void notice(const std::string& failure) { noticed_ = failure; }

 protected:
  virtual Work issue(Stream& stream, const Collective& collective) = 0;
  // CheckFailed for spans that no collective takes; then what it reads and writes is observed.
  void check_and_note(const Stream& stream, const Collective& collective) const;

  StreamLog& log_;

 private:
  void check_root(int root) const;

  GroupMembers members_;
  std::string noticed_;
};

// The first failure among the groups of a rank that it has not noticed in any; notices it.
template <class Groups>
std::optional<std::string> take_failure(const Groups& groups) {
  for (const auto& group : groups) {
    std::optional<std::string> failure = group->failure();
    const auto is_known = [&](const auto& other) { return other->noticed() == *failure; };
    if (!failure || std::ranges::any_of(groups, is_known)) continue;
    group->notice(*failure);
    return failure;
  }
  return std::nullopt;
}

}  // namespace zeroproof::host
