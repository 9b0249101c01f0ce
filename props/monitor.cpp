#include "zeroproof/props/monitor.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

std::string_view status_name(Status status) {
  switch (status) {
    case Status::held:
      return "held";
    case Status::falsified:
      return "falsified";
    case Status::latent:
      return "latent";
    case Status::not_applicable:
      break;
  }
  return "not_applicable";
}

std::string describe_event(const HookEvent& event, const NameTable& names) {
  std::string text(event_kind_name(event.kind));
  if (!event.name.is_none()) text += fmt::format(" {}", names.text(event.name));
  if (!event.param.is_none()) text += fmt::format(" {}", names.text(event.param));
  const std::size_t shown = std::min(event.params.size(), kListedNamesMax);
  for (std::size_t at = 0; at < shown; ++at)
    text += fmt::format(" {}", names.text(event.params[at]));
  if (shown < event.params.size()) text += fmt::format(" and {} more", event.params.size() - shown);
  if (event.is_exceptional()) text += fmt::format(" exc {}", names.text(event.exception));
  return text;
}

std::string engine_name(EngineId engine) {
  return engine.is_none() ? std::string("an engine") : fmt::format("engine {}", engine.value);
}

std::string task_name(const BackwardTally& tally) {
  return tally.graph_task.is_none() ? std::string("the backward")
                                    : fmt::format("graph task {}", tally.graph_task.value);
}

Place Monitor::place(const HookEvent& event) const {
  return {event.lc, event.rank, describe_event(event, *context_.names)};
}

void Monitor::add(const Place& where, std::string what, bool is_latent, bool is_after_exception) {
  is_applicable_ = true;
  is_falsified_ = is_falsified_ || !is_latent;
  finding_count_ += 1;
  if (findings_.size() < kFindingsMax)
    findings_.push_back({context_.property, where.lc, where.rank, where.event, std::move(what),
                         is_latent, is_after_exception});
}

Verdict Monitor::verdict() const {
  Verdict verdict;
  verdict.property = context_.property;
  verdict.findings = findings_;
  verdict.finding_count = finding_count_;
  if (is_falsified_)
    verdict.status = Status::falsified;
  else if (finding_count_ > 0)
    verdict.status = Status::latent;
  else if (is_applicable_)
    verdict.status = Status::held;
  else
    verdict.reason = "the events it speaks about did not occur";
  return verdict;
}

void Monitor::append_state(std::string& bytes) const {
  append_bytes(bytes, is_applicable_);
  append_bytes(bytes, is_falsified_);
  append_bytes(bytes, finding_count_ > 0);
  append_memory(bytes);
}

}  // namespace zeroproof
