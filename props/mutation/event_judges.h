#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "props/mutation/collective_judge.h"
#include "props/mutation/cost_judge.h"
#include "props/mutation/fetch_judge.h"
#include "props/mutation/gather_judge.h"
#include "props/mutation/kept_judge.h"
#include "props/mutation/record_judge.h"
#include "props/mutation/residency_judge.h"
#include "props/mutation/retained_judge.h"
#include "props/mutation/stage3_judge.h"

namespace zeroproof::mutation {

// All that judges the events of one rank of a case: what they cost, and what stays where. Used on
// the thread of its rank.
class EventJudges final : public EventSink {
 public:
  // Both must outlive it. What tensor-parallel groups do is not judged.
  EventJudges(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  // With the number of its property; at the end of the record.
  void for_each_finding(
      const std::function<void(std::string_view number, const std::string& text)>& see) const;

 private:
  const NameTable& names_;
  std::set<std::string, std::less<>> tensor_groups_;
  CostJudge cost_;
  CollectiveJudge collectives_;
  FetchJudge fetch_;
  RecordJudge record_;
  ResidencyJudge residency_;
  GatherJudge gather_;
  Stage3Judge stage3_;
  KeptJudge kept_;
  RetainedJudge retained_;
};

}  // namespace zeroproof::mutation
