#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// What one rank gathers in stage 3 while it follows a recorded order, and where that is more than
// that order needs, or too late: R10; and what it keeps
// longer than that needs: R12. Used on the thread of its rank.
class FetchJudge final : public EventSink {
 public:
  // Both must outlive it.
  FetchJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  // The first place; empty: none.
  const std::string& finding() const { return finding_; }            // R10
  const std::string& kept_finding() const { return kept_finding_; }  // R12

 private:
  enum class Mode : std::uint8_t { invalid, record, complete };

  void see_retained(const HookEvent& event);
  void see_agreement(const HookEvent& event);
  void see_forward(const HookEvent& event);
  void see_reuse(const HookEvent& event);
  void see_kept(NameId module);
  void see_call(std::string_view method);
  void follow_mode(std::string_view method);
  void see_gather(const HookEvent& event);
  bool is_followed() const { return mode_ == Mode::complete && is_in_pass_; }
  bool is_of_fetched_module(NameId parameter) const;
  bool has_travelling(NameId module) const;  // parameters that do not persist
  void begin_fetch(NameId module);
  bool is_late(NameId parameter) const;  // where the fetch before had room for it

  const NameTable& names_;
  bool is_judged_;  // nothing but the order decides what is gathered
  bool has_whole_parameters_;
  bool has_one_engine_;
  bool has_retained_;   // two backwards over one forward
  bool all_persist_;    // every parameter is small enough
  std::int64_t reuse_;  // elements within which something is used again and has to stay; or 0
  const train::CaseSpec& spec_;
  bool keeps_used_;                   // what is used again in a pass stays whole until then
  bool has_room_;                     // for all parameters at once, ahead of their use
  bool has_rests_;                    // windows in which nothing runs
  bool fills_bucket_;                 // nothing else bounds what a fetch gathers ahead
  std::int64_t passed_elements_ = 0;  // of the modules before the one fetched last
  std::int64_t of_fetched_ = 0;       // and of that one
  std::map<NameId, std::int64_t> given_up_at_;
  std::map<NameId, std::int64_t> ended_at_;  // modules whose parameters are still whole
  int resets_ = 0;                           // of one engine's order, since it was given up
  bool is_resetting_ = false;
  bool is_begun_ = false;      // the pass has gathered something
  bool is_recording_ = false;  // some pass has begun an order
  bool is_in_forward_ = false;
  Mode mode_ = Mode::invalid;
  bool is_in_pass_ = false;  // from a root forward to whatever ends its backward
  NameId fetched_;           // the module whose fetch was the last
  std::set<NameId> released_;
  std::set<NameId> ahead_;                // gathered for a later module, and not there yet
  std::set<NameId> given_up_;             // in the first backward over a graph
  std::vector<NameId> gathering_;         // the last gather's
  std::int64_t ahead_elements_ = 0;       // that the last fetch gathers for later modules
  std::int64_t last_ahead_elements_ = 0;  // the same of the one before, where it follows the order
  std::set<NameId> given_up_since_;       // the last fetch
  std::set<NameId> given_up_before_;      // it, and behind the one before
  int backwards_ = 0;                     // since the last forward
  int graph_tasks_ = 0;                   // that run; outside of them the user gathers
  std::string finding_;
  std::string kept_finding_;
};

}  // namespace zeroproof::mutation
