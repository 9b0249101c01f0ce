#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "props/replay/sequence_digest.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// The ranks of a group, ascending as recorded; one object for all files that agree on them.
using GroupMembers = std::shared_ptr<const std::vector<std::int32_t>>;
using MemberTable = std::set<GroupMembers, bool (*)(const GroupMembers&, const GroupMembers&)>;
MemberTable make_member_table();

// Collectives or messages that were issued and of which no completion was seen, in their order.
class OpenNumbers {
 public:
  struct Item {
    std::int64_t number = 0;
    std::uint64_t lc = 0;
    NameId op;
    std::int64_t bytes = -1;
  };

  void add(const Item& item);
  // A group completes in its order: every earlier number is complete, too.
  void complete(std::int64_t number);

  std::int64_t completed() const { return completed_; }  // the highest number; -1: none
  const Item* first() const { return items_.empty() ? nullptr : &items_.front(); }
  bool contains(std::int64_t number) const;
  std::size_t memory_bytes() const { return items_.capacity() * sizeof(Item); }

 private:
  std::vector<Item> items_;
  std::int64_t completed_ = -1;
};

// What one rank issued on one group.
struct CollectiveLane {
  std::string group;           // as the rank calls it
  std::string description;     // of the group; may be empty
  GroupMembers members;        // null: unknown
  SequenceDigest operations;   // operation, root and, where ranks agree on it, size
  std::uint64_t purposes = 0;  // chained: what each was for
  std::int64_t first_number = -1;
  std::int64_t joined = -1;  // the highest number whose completion proves that all ranks issued it
  OpenNumbers open;
  std::string open_text;  // of the first open one
};

// What one rank sent to, or received from, one other rank on one group.
struct MessageLane {
  std::string group;
  std::int32_t peer = -1;
  bool is_send = false;
  std::uint64_t count = 0;
  std::uint64_t sizes = 0;  // sum of hashes: messages of several tags have no common order
  OpenNumbers open;
  std::string open_text;
};

}  // namespace zeroproof
