#include "props/report/search_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "props/registry.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

// One event of a counterexample that has no record of its own.
struct Step {
  std::int32_t rank = 0;
  std::string words;
};

// The rank stands after the last of these words.
Step step_of(const std::string& words, std::string_view before) {
  Step step{.words = words};
  const std::size_t at = words.rfind(before);
  if (at == std::string::npos) return step;
  const char* const digits = words.data() + at + before.size();
  const auto parsed = std::from_chars(digits, words.data() + words.size(), step.rank);
  if (parsed.ec != std::errc()) return step;
  if (at == 0 && *parsed.ptr == '.') {
    step.words = parsed.ptr + 1;  // "r0.p3"
  } else {
    step.words = words.substr(0, at);  // "hook 0 on rank 0"
  }
  return step;
}

PictureCategory category_of(const std::string& words) {
  const auto holds = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  if (holds("collective") || holds("reduction") || holds("launch")) {
    return PictureCategory::collective;
  }
  if (holds("epilogue") || holds("prologue") || holds("end")) return PictureCategory::boundary;
  if (holds("counter") || holds("choose")) return PictureCategory::manager;
  return PictureCategory::hook;
}

class StepsPicture {
 public:
  explicit StepsPicture(const std::vector<Step>& steps) {
    for (const Step& step : steps) lanes_[step.rank] = 0;
    for (auto& [rank, lane] : lanes_) {
      lane = static_cast<std::uint32_t>(picture_.processes.size());
      picture_.processes.push_back({.title = fmt::format("rank {}", rank), .rank = rank});
      picture_.tracks.push_back({lane, PictureTrackKind::thread, "steps", 0, 1});
    }
    // Events stand by process; their ticks say how the ranks took turns.
    for (const auto& [rank, lane] : lanes_) {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].rank == rank) add(steps[i], lane, i + 1);
      }
    }
  }

  Picture finish(std::string title, std::string note, PictureFinding finding) {
    const auto last = std::max_element(
        picture_.events.begin(), picture_.events.end(),
        [](const PictureEvent& a, const PictureEvent& b) { return a.tick < b.tick; });
    finding.event = picture_.events.empty() ? -1 : last - picture_.events.begin();
    if (finding.event >= 0) finding.where = picture_.processes[last->process].title;
    picture_.findings.push_back(std::move(finding));
    picture_.title = std::move(title);
    picture_.note = std::move(note);
    picture_.good = "no rule broken";
    return std::move(picture_);
  }

 private:
  void add(const Step& step, std::uint32_t lane, std::uint64_t tick) {
    PictureEvent event{.process = lane, .track = lane, .is_moment = true};
    event.category = category_of(step.words);
    event.lc = event.tick = tick;
    event.kind = intern("step");
    event.words = intern(visible(step.words));
    event.fields = "{}";
    picture_.events.push_back(std::move(event));
  }

  std::uint32_t intern(const std::string& text) {
    const auto at = std::find(picture_.strings.begin(), picture_.strings.end(), text);
    const auto index = at - picture_.strings.begin();
    if (at == picture_.strings.end()) picture_.strings.push_back(text);
    return static_cast<std::uint32_t>(index);
  }

  Picture picture_;
  std::map<std::int32_t, std::uint32_t> lanes_;  // by rank
};

std::vector<Step> steps_of(const std::vector<std::string>& words, std::string_view before) {
  std::vector<Step> steps;
  for (const std::string& one : words) steps.push_back(step_of(one, before));
  return steps;
}

LocatedFinding located(const ZeroEpilogueFinding& finding) {
  const std::string number(property_name(finding.property));
  return {.rule = "zero_epilogue." + number,
          .number = number,
          .statement = std::string(property_statement(finding.property)),
          .text = finding.steps.empty() ? std::string(property_statement(finding.property))
                                        : "broken by: " + finding.steps.back(),
          .subject = "zero_epilogue " + finding.settings,
          .reproduce = finding.token.empty() ? "" : "replay " + finding.token};
}

}  // namespace

// A kind of the engine level is the number of a property, or a word of its own.
LocatedFinding located_finding(const train::CaseFinding& finding, const Schedule& schedule) {
  LocatedFinding located{.rule = "engine." + finding.kind, .text = finding.text};
  if (const Property* property = find_property(finding.kind)) {
    located.rule = property->id;
    located.number = property->number;
    located.statement = property->statement;
    located.source = property->source;
  }
  located.subject = schedule.scenario;
  located.rank = finding.rank;
  located.reproduce = "replay " + schedule_text(schedule);
  return located;
}

LocatedFindings located_findings(const std::vector<TimedExploration>& explorations) {
  LocatedFindings findings;
  for (const TimedExploration& one : explorations) {
    for (const train::EngineFinding& finding : one.report.findings) {
      findings.push_back(located_finding(finding.finding, finding.minimized));
    }
  }
  return findings;
}

LocatedFindings located_findings(const std::vector<train::EngineReplay>& replays) {
  LocatedFindings findings;
  for (const train::EngineReplay& replay : replays) {
    for (const train::CaseFinding& finding : replay.run.findings) {
      findings.push_back(located_finding(finding, replay.schedule));
    }
  }
  return findings;
}

LocatedFindings located_findings(const ZeroEpilogueReport& report) {
  LocatedFindings findings;
  for (const ZeroEpilogueFinding& finding : report.findings) findings.push_back(located(finding));
  return findings;
}

LocatedFindings located_findings(const HookOrderReport& report) {
  LocatedFindings findings;
  for (const HookOrderFinding& finding : report.findings) {
    findings.push_back({.rule = fmt::format("hook_order.{}", property_name(finding.property)),
                        .number = std::string(property_name(finding.property)),
                        .statement = std::string(property_statement(finding.property)),
                        .text = finding.explanation,
                        .subject = "hook_order " + report.settings});
  }
  return findings;
}

Picture finding_picture(const ZeroEpilogueReport& report, const ZeroEpilogueFinding& finding) {
  const LocatedFinding about = located(finding);
  Picture picture = StepsPicture(steps_of(finding.steps, " on rank "))
                        .finish(fmt::format("{} · {}", about.number, about.subject), report.defect,
                                {.number = about.number,
                                 .id = about.rule,
                                 .statement = about.statement,
                                 .text = "does not hold in this order: " + about.statement});
  if (!about.reproduce.empty()) picture.reproduce = "zeroproof " + about.reproduce;
  return picture;
}

Picture finding_picture(const HookOrderReport& report, const HookOrderFinding& finding) {
  const std::string number(property_name(finding.property));
  return StepsPicture(steps_of(finding.moves, "r"))
      .finish(fmt::format("{} · hook_order {}", number, report.settings), report.planted,
              {.number = number,
               .id = "hook_order." + number,
               .statement = std::string(property_statement(finding.property)),
               .text = visible(finding.explanation)});
}

}  // namespace zeroproof
