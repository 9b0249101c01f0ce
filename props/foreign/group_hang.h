#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "props/foreign/collective_group.h"
#include "props/foreign/dump_finding.h"
#include "props/foreign/group_progress.h"

namespace zeroproof {

// The last collective that all ranks of a group share.
struct CommonPlace {
  const RankDump* dump = nullptr;
  const DumpedCollective* one = nullptr;

  // nullopt: there is none.
  std::optional<DiagnosisMoment> moment() const;
};

// What the ranks of a group wait in, and for whom. All arguments must outlive it.
class GroupHang {
 public:
  // `last_common` is read when a question is asked.
  GroupHang(const CollectiveGroup& group, const GroupState& state, const CommonPlace& last_common)
      : group_(group), state_(state), last_common_(last_common) {}

  // Ranks that never issued this number while others wait in it, or, where that is why, ranks whose
  // device has not done an earlier one.
  std::optional<DumpFinding> missing_at(std::int64_t number) const;

  // After all numbers agree: a device that lags the others; all ranks in one collective; or
  // a single rank that waits.
  std::optional<DumpFinding> stuck() const;

 private:
  using Views = std::vector<std::size_t>;

  Diagnosis diagnosis(std::string kind, const DumpedCollective& one) const;
  std::vector<std::int32_t> ranks_of(const Views& views) const;
  Views waiting() const;
  DumpFinding missing(std::int64_t number, const Views& there, const Views& absent) const;
  DumpFinding stalled(const Views& behind, const Views& waiting) const;
  DumpFinding together(const Views& waiting, const DumpedCollective& one) const;
  DumpFinding alone(std::size_t at) const;
  std::string queued_words(const GroupView& view) const;
  std::string without_file_words() const;
  void add_moments(const Views& views, std::int64_t number, bool is_bad, Diagnosis& found) const;

  const CollectiveGroup& group_;
  const GroupState& state_;
  const CommonPlace& last_common_;
};

}  // namespace zeroproof
