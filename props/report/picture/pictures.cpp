#include "props/report/picture/pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "props/report/picture/picture_builder.h"
#include "props/report/replay_findings.h"
#include "props/report/text.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

constexpr const char* kGood = "no rule broken";

PictureFinding picture_finding(const LocatedFinding& finding, std::int64_t event) {
  std::string where = finding.rank >= 0 ? fmt::format("rank {}", finding.rank) : finding.subject;
  return {.event = event,
          .number = finding.number.empty() ? finding.rule.substr(0, finding.rule.find('.'))
                                           : finding.number,
          .id = finding.rule,
          .statement = finding.statement,
          .text = visible(finding.text),
          .where = visible(where),
          .is_latent = finding.level == FindingLevel::warning};
}

// Broken rules before those that are merely in danger; each kind in the order of its events.
void sort_findings(Picture& picture) {
  std::stable_sort(
      picture.findings.begin(), picture.findings.end(),
      [](const PictureFinding& a, const PictureFinding& b) { return a.is_latent < b.is_latent; });
}

// Reads traces into a builder.
class TraceGallery {
 public:
  explicit TraceGallery(const TracePictureOptions& options) : options_(options), builder_(names_) {}

  Result<void> add(const std::string& path) {
    auto reader = TraceReader::open(path, names_);
    if (!reader) return tl::unexpected(reader.error());
    const HeaderRecord& header = reader->header();
    builder_.begin_source(header, path);
    note(header);
    while (true) {
      const auto record = reader->next();
      if (!record || *record == nullptr) return {};  // a fault is among the findings
      if (const auto* thread = std::get_if<ThreadRecord>(&(*record)->body)) {
        builder_.declare(*thread);
      }
      const HookEvent* event = (*record)->event();
      if (event == nullptr || (options_.shows && !options_.shows(*event))) continue;
      if (builder_.event_count() == options_.events_max) return too_many(path);
      builder_.add(*event, (*record)->line);
    }
  }

  Picture finish(const std::vector<std::string>& paths, const LocatedFindings& findings) {
    std::vector<PictureFinding> marked;
    for (const LocatedFinding& finding : findings) {
      marked.push_back(picture_finding(finding, event_of(paths, finding)));
    }
    Picture picture = builder_.finish();
    picture.findings = std::move(marked);
    sort_findings(picture);
    picture.title = fmt::format("{}", fmt::join(titles_, " · "));
    picture.note = fmt::format("{}", fmt::join(notes_, " · "));
    picture.good = kGood;
    return picture;
  }

 private:
  void note(const HeaderRecord& header) {
    const auto once = [](std::vector<std::string>& words, const std::string& word) {
      const bool is_there = std::find(words.begin(), words.end(), word) != words.end();
      if (!word.empty() && !is_there) words.push_back(word);
    };
    once(titles_, visible(header.program));
    if (header.stage) once(titles_, fmt::format("stage {}", *header.stage));
    once(titles_, visible(header.dtype));
    if (header.world > 1) once(titles_, fmt::format("{} ranks", header.world));
    once(notes_, visible(header.description));
  }

  std::int64_t event_of(const std::vector<std::string>& paths, const LocatedFinding& finding) {
    const auto source = std::find(paths.begin(), paths.end(), finding.file);
    if (source == paths.end()) return -1;
    const auto index = static_cast<std::size_t>(source - paths.begin());
    if (finding.call >= 0) return builder_.find_task(index, finding.call);
    return builder_.find_event(index, std::max(finding.rank, 0), finding.lc);
  }

  Result<void> too_many(const std::string& path) const {
    return fail(ErrorCode::usage,
                fmt::format("{}: more than {} events are too many for one page; show a part of "
                            "them with --from and --to",
                            path, options_.events_max));
  }

  const TracePictureOptions& options_;
  NameTable names_;
  PictureBuilder builder_;
  std::vector<std::string> titles_;
  std::vector<std::string> notes_;
};

std::string setting(const Schedule& schedule, const char* key) {
  const auto found = schedule.settings.find(key);
  return found == schedule.settings.end() ? std::string() : found->second;
}

// A run that no clock was beside.
HeaderRecord header_of(const Schedule& schedule) {
  HeaderRecord header;
  header.clock.source = "virtual";
  header.producer = {{"tool", "zeroproof explore"}, {"mode", setting(schedule, "mode")}};
  header.program = schedule.scenario;
  header.policy = setting(schedule, "policy");
  return header;
}

Picture events_picture(const std::vector<HookEvent>& events, const NameTable& names,
                       const HeaderRecord& header, const LocatedFindings& findings) {
  PictureBuilder builder(names);
  builder.begin_source(header, "this schedule");
  for (const HookEvent& event : events) builder.add(event);
  std::vector<PictureFinding> marked;
  for (const LocatedFinding& finding : findings) {
    const auto at = builder.find_event(0, std::max(finding.rank, 0), finding.lc);
    const auto last = static_cast<std::int64_t>(events.size()) - 1;
    marked.push_back(picture_finding(finding, at < 0 ? last : at));  // too late is at the end
  }
  Picture picture = builder.finish();
  picture.findings = std::move(marked);
  sort_findings(picture);
  picture.good = kGood;
  return picture;
}

std::string settings_title(const Schedule& schedule) {
  const auto options = options_of(schedule);
  const std::string_view order = options ? order_model_name(options->order_model) : "";
  return fmt::format("{} · {} · {} · N={}", visible(schedule.scenario), setting(schedule, "policy"),
                     order, setting(schedule, "N"));
}

}  // namespace

Result<Picture> trace_picture(const std::vector<std::string>& paths,
                              const LocatedFindings& findings, const TracePictureOptions& options) {
  TraceGallery gallery(options);
  for (const std::string& path : paths) {
    if (auto added = gallery.add(path); !added) return tl::unexpected(added.error());
  }
  return gallery.finish(paths, findings);
}

Picture run_picture(const ScheduleReplay& replay, const std::string& reproduce) {
  Picture picture = events_picture(replay.run.events, replay.run.names, header_of(replay.schedule),
                                   located_findings(std::vector<ScheduleReplay>{replay}));
  picture.title = settings_title(replay.schedule);
  picture.note = "one order of this scenario, run again";
  picture.reproduce = reproduce;
  return picture;
}

Picture finding_picture(const ExplorationReport& report, const ExplorationFinding& finding) {
  LocatedFinding located = located_finding(finding.finding);
  if (finding.bad_event < finding.events.size()) {
    located.lc = finding.events[finding.bad_event].lc;
    located.rank = finding.events[finding.bad_event].rank;
  }
  Picture picture =
      events_picture(finding.events, finding.names, header_of(finding.schedule), {located});
  picture.title = fmt::format("{} · {}", located.number, settings_title(finding.schedule));
  picture.note = report.title;
  picture.reproduce = "zeroproof replay " + schedule_text(finding.schedule);
  return picture;
}

}  // namespace zeroproof
