#include "props/replay/properties_level.h"

#include <algorithm>
#include <utility>

#include "props/replay/lost_kinds.h"

namespace zeroproof {
namespace {

constexpr std::string_view kNoEngine = "the trace has no engine";
constexpr std::string_view kOtherFramework = "the job runs FSDP2, whose rules are its own";
constexpr std::string_view kExploreScope = "explore scope";
constexpr std::string_view kTrainScope = "train scope: needs the numbers of `zeroproof train`";
constexpr std::string_view kAccessScope = "access scope: needs the memory accesses of streams";
constexpr std::string_view kSeveralFiles = "needs the traces of other ranks";
constexpr std::string_view kReference = "needs the stage 0 trace of the same program";

std::string_view reason_without_monitor(const Property& property) {
  const bool is_of_traces = property.scopes.has(Scope::trace);
  if (!is_of_traces && property.scopes.has(Scope::train)) return kTrainScope;
  if (!is_of_traces && property.scopes.has(Scope::access)) return kAccessScope;
  if (!is_of_traces) return kExploreScope;
  return property.number == "P45" || property.number == "P67" ? kSeveralFiles : kReference;
}

}  // namespace

PropertiesLevel::PropertiesLevel(RunFacts facts, const NameTable& names, const JobFacts& job)
    : facts_(std::move(facts)),
      names_(&names),
      job_(&job),
      run_(Scope::trace, names),
      digest_(facts_.stage) {}

void PropertiesLevel::add_tensor(std::string_view role, std::string_view name,
                                 const std::vector<double>* values) {
  digest_.add_tensor(role, name, values);
}

void PropertiesLevel::on_event(const HookEvent& event) {
  if (event.kind == EventKind::engine_call && facts_.stage < 0)
    is_fsdp2_ = is_fsdp2_ || names_->text(event.name).starts_with("fsdp2.");
  if (!is_fsdp2_) run_.on_event(event);
  digest_.on_event(event, *names_);
}

void PropertiesLevel::finish(bool is_complete) {
  run_.finish();
  digest_.finish(is_complete, *names_, *job_);
}

PropertiesReport PropertiesLevel::report() const {
  PropertiesReport report;
  const std::vector<Verdict> verdicts = run_.verdicts();
  for (const Property& property : all_properties()) {
    const auto verdict = std::find_if(verdicts.begin(), verdicts.end(), [&](const Verdict& one) {
      return one.property == &property;
    });
    if (std::string reason = reason_without_verdict(property); !reason.empty()) {
      report.not_applicable.push_back({&property, std::move(reason)});
    } else if (verdict == verdicts.end()) {
      report.not_applicable.push_back({&property, std::string(reason_without_monitor(property))});
    } else {
      report.add(*verdict);
    }
  }
  if (facts_.is_of_deepspeed) soften_depth(report);
  return report;
}

// DeepSpeed enters a backward once for each forward whose outputs a loss joins, and leaves it once.
// The depth that stays does no harm by itself: what it does shows as a missing epilogue.
void PropertiesLevel::soften_depth(PropertiesReport& report) {
  if (report.is_falsified("P1") || report.is_falsified("P7") || report.is_falsified("P12")) return;
  const auto first = std::stable_partition(
      report.falsified.begin(), report.falsified.end(), [](const Finding& finding) {
        return finding.property->number != "P4" || finding.is_after_exception;
      });
  for (auto finding = first; finding != report.falsified.end(); ++finding) {
    finding->is_latent = true;
    report.latent.push_back(std::move(*finding));
  }
  report.falsified.erase(first, report.falsified.end());
}

bool PropertiesReport::is_falsified(std::string_view number) const {
  return std::any_of(falsified.begin(), falsified.end(),
                     [&](const Finding& finding) { return finding.property->number == number; });
}

// Empty: the property is judged.
std::string PropertiesLevel::reason_without_verdict(const Property& property) const {
  if (is_fsdp2_) return std::string(kOtherFramework);
  if (!run_.view().has_engine()) return std::string(kNoEngine);
  if (job_->notes.empty()) return {};
  return LostKinds(job_->notes).reason(kinds_needed(property.number));
}

void PropertiesReport::add(const Verdict& verdict) {
  if (verdict.status == Status::held) held.push_back(verdict.property);
  if (verdict.status == Status::not_applicable)
    not_applicable.push_back({verdict.property, verdict.reason});
  for (const Finding& finding : verdict.findings)
    (finding.is_latent ? latent : falsified).push_back(finding);
}

void PropertiesReport::merge(const PropertiesReport& other) {
  const auto is_falsified = [&](const Property* property) {
    return std::any_of(falsified.begin(), falsified.end(),
                       [&](const Finding& finding) { return finding.property == property; });
  };
  const auto is_held = [&](const Property* property) {
    return std::find(held.begin(), held.end(), property) != held.end();
  };
  falsified.insert(falsified.end(), other.falsified.begin(), other.falsified.end());
  latent.insert(latent.end(), other.latent.begin(), other.latent.end());
  for (const Property* property : other.held)
    if (!is_held(property)) held.push_back(property);
  std::erase_if(held, is_falsified);
  for (const NotApplicable& entry : other.not_applicable) {
    const auto same = [&](const NotApplicable& mine) { return mine.property == entry.property; };
    std::erase_if(not_applicable, same);  // the comparison's reason says more
    not_applicable.push_back(entry);
  }
  std::erase_if(not_applicable, [&](const NotApplicable& entry) {
    return is_held(entry.property) || is_falsified(entry.property);
  });
}

}  // namespace zeroproof
