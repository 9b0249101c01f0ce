#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// What the configuration and the program of a case say about the events of one rank of stage 3:
// which modules fetch for themselves and which gradients are reduced, how often an order begins
// (R10), and what a window counts (R13). Used on the thread of its rank.
class Stage3Judge final : public EventSink {
 public:
  // Both must outlive it.
  Stage3Judge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  // The first place; empty: none.
  const std::string& cost_finding() const { return cost_finding_; }    // R10
  const std::string& count_finding() const { return count_finding_; }  // R13

 private:
  void see_call(const HookEvent& event);
  void see_fetch(const HookEvent& event);
  void see_gradient(const HookEvent& event);
  void see_mark(const HookEvent& event);
  int layer_of(NameId parameter) const;  // -1: of none

  const train::CaseSpec& spec_;
  const NameTable& names_;
  bool judges_order_;            // every pass runs the same modules
  bool judges_owners_;           // of two modules of a layer the inner one follows the outer one
  int tiled_layer_;              // whose gradients come once for all tiles; -1: none
  std::set<int> idle_;           // layers that nothing uses
  std::string expected_;         // the module that has to fetch next; empty: any
  bool is_reset_ = false;        // the forward under way has begun an order
  int resets_ = 0;               // of the order
  int forwards_ = 0;             // open ones
  std::map<NameId, int> added_;  // of the tiled layer, since the last forward began
  std::set<EngineId> fresh_;     // engines whose window is empty
  std::string cost_finding_;
  std::string count_finding_;
};

}  // namespace zeroproof::mutation
