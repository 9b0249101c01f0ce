#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// What the gathers of one rank of stage 3 are made of, whatever order they come in: collectives
// that nobody needs or that have no end (R10), parameters that are whole without a gather or are
// kept beyond the room for them (R12), persistent ones that are given up or do not come back (P64).
// Used on the thread of its rank.
class GatherJudge final : public EventSink {
 public:
  // Both must outlive it.
  GatherJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  // The first place; empty: none.
  const std::string& collective_finding() const { return collective_finding_; }  // R10
  const std::string& kept_finding() const { return kept_finding_; }              // R12
  const std::string& given_finding() const { return given_finding_; }            // P64

 private:
  using Collective = std::tuple<EngineId, NameId, std::int64_t>;  // its group and number there

  void see_collective(const HookEvent& event);
  void see_call(const HookEvent& event);
  void see_return(const HookEvent& event);
  void see_partition(const HookEvent& event);
  void see_whole(const HookEvent& event);
  void see_reclaimed(const HookEvent& event);
  void judge_persistent(EngineId engine);
  std::vector<std::string> parameters_of_module(std::string_view module) const;

  const train::CaseSpec& spec_;
  const NameTable& names_;
  int dtypes_;              // of wires, at most
  bool judges_persistent_;  // nobody but the engine gives parameters up in a backward
  bool judges_reclaimed_;
  int issued_ = 0;                    // all-gathers of the gather that has just begun
  int issued_by_step_ = 0;            // since the last z3.post_step began
  bool has_just_begun_ = false;       // nothing since the last gather_begin
  int freeing_calls_ = 0;             // open ones that may give anything up
  std::set<Collective> outstanding_;  // asynchronous all-gathers without an end
  std::set<NameId> gathered_;         // since all were given up
  std::set<NameId> fetched_;          // modules that have not ended
  std::set<NameId> reclaimed_;        // in the running backward
  std::int64_t reclaimed_elements_ = 0;
  int graph_tasks_ = 0;
  bool has_reset_ = false;  // since the load under way began
  std::string collective_finding_;
  std::string kept_finding_;
  std::string given_finding_;
};

}  // namespace zeroproof::mutation
