#include "props/replay/rule_findings.h"

#include "props/replay/moment.h"

namespace zeroproof {

void RuleFindings::begin_story(const HookEvent& event) {
  story_ = {moment_of(event, names_)};
}

void RuleFindings::tell(DiagnosisMoment moment) {
  if (story_.size() < story_max_) story_.push_back(std::move(moment));
}

void RuleFindings::tell(const HookEvent& event) {
  if (story_.size() < story_max_) story_.push_back(moment_of(event, names_));
}

std::vector<DiagnosisMoment> RuleFindings::story_until(const HookEvent& at) const {
  std::vector<DiagnosisMoment> order = story_;
  order.push_back(moment_of(at, names_));
  order.back().is_bad = true;
  return order;
}

void RuleFindings::find(Diagnosis diagnosis, const HookEvent& at) {
  if (!kinds_.insert(diagnosis.kind).second) return;
  diagnosis.ranks = {at.rank};
  diagnosis.order = story_until(at);
  found_.push_back(std::move(diagnosis));
}

void RuleFindings::take(std::vector<Diagnosis>& out) {
  for (Diagnosis& diagnosis : found_) out.push_back(std::move(diagnosis));
  found_.clear();
}

}  // namespace zeroproof
