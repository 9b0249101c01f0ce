#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/lane_group.h"

namespace zeroproof {

// Which ranks cannot go on, in what, and for whom: as far as completions are known. A collective
// that any rank has seen complete has been joined by all, and is not waited for.
class RankWaits {
 public:
  RankWaits(const std::vector<RunMember>& members, const std::vector<LaneGroup>& groups);

  bool is_waiting(std::size_t member) const { return waits_[member].has_value(); }
  // Whether the member waits in a collective of `group`, with this number.
  bool is_waiting_in(std::size_t member, const LaneGroup& group, std::int64_t number) const;

  // Ranks that wait in the same place, together; most ranks first.
  std::vector<DiagnosisWait> all() const;

  // "... never completes", one moment a place, at most `moments_max`.
  std::vector<DiagnosisMoment> moments(std::size_t moments_max) const;

 private:
  struct Wait {
    const LaneGroup* group = nullptr;  // null: a message
    std::int64_t number = 0;
    std::uint64_t lc = 0;
    std::string text;
    std::int32_t peer = -1;  // of a message
  };

  void offer(std::size_t member, Wait wait);
  std::vector<std::int32_t> awaited_ranks(const Wait& wait) const;

  const std::vector<RunMember>& members_;
  std::vector<std::optional<Wait>> waits_;  // by member: the first on its clock
};

}  // namespace zeroproof
