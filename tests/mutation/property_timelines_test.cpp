// Where each property fails: the smallest case of a fault that falsifies it, or else the short
// stream of events that its monitor is tested with (docs/timelines/properties.md).
// docs/PROPERTIES.md leads to each.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <tuple>

#include "props/mutation/hunt.h"
#include "props/registry.h"
#include "props/report/timeline.h"
#include "props/run_properties.h"
#include "tests/mutation/counterexamples.h"
#include "tests/props/property_script.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

const std::string kFolder = ZP_SOURCE_DIR "/tests/";
const std::string kCatalogue = ZP_SOURCE_DIR "/docs/PROPERTIES.md";
const std::string kStreams = ZP_SOURCE_DIR "/docs/timelines/properties.md";
constexpr const char* kHeading = "## Timelines\n";
constexpr const char* kWrite =
    "build/dev/bin/zeroproof_mutation_tests --gtest_also_run_disabled_tests "
    "--gtest_filter='PropertyTimelines.DISABLED_Are_written'";

Json json_of(const std::string& name) {
  return Json::parse(read_file(kFolder + name));
}

std::vector<const Property*> properties() {
  std::vector<const Property*> all;
  for (const Property& property : all_properties()) all.push_back(&property);
  for (const Property& property : run_properties()) all.push_back(&property);
  return all;
}

// A smallest case of a fault, run again.
struct Shown {
  bool is_further = false;
  std::uint64_t events = 0;
  std::string id;
  std::set<std::string> numbers;  // of what it falsifies

  auto rank() const { return std::tuple(is_further, events, id); }
};

// The catalogue's first, then those of few events.
std::vector<Shown> shown_cases() {
  std::vector<Shown> cases;
  for (const auto& [id, schedule] : pinned_schedules()) {
    const mutation::Fault* const fault = mutation::find_fault(id);
    const auto token = mutation::read_token(schedule, id);
    if (!fault || !token) {
      ADD_FAILURE() << id << ": no fault, or no schedule: write tests/mutation/*.json again";
      continue;
    }
    const mutation::CaseResult result = mutation::replay(token->counterexample, fault);
    Shown shown{fault->is_further(), result.events, id, {}};
    for (const mutation::Falsified& one : result.falsified)
      shown.numbers.emplace(one.property->number);
    cases.push_back(std::move(shown));
  }
  std::ranges::sort(cases, {}, &Shown::rank);
  return cases;
}

// The documents that say where else a property fails.
struct Sources {
  std::vector<Shown> cases = shown_cases();
  Json matrix = json_of("mutation/matrix.json");
  Json streams = json_of("props/property_streams.json");
  Json explored = json_of("props/hazard_table.json").at("rows");
  Json elsewhere = json_of("props/property_seen_failing.json");

  const Shown* smallest(const std::string& number) const {
    const auto is_it = [&](const Shown& one) { return one.numbers.contains(number); };
    const auto at = std::ranges::find_if(cases, is_it);
    return at == cases.end() ? nullptr : &*at;
  }

  // The smallest of those that falsify it in another case than the one that is shown.
  const Shown* in_other_cases(const std::string& number) const {
    const auto is_it = [&](const Shown& one) {
      const Json row = matrix.value(one.id, Json::array());
      return std::ranges::find(row, Json(number)) != row.end();
    };
    const auto at = std::ranges::find_if(cases, is_it);
    return at == cases.end() ? nullptr : &*at;
  }

  const Json* stream(const std::string& number) const {
    const auto is_it = [&](const Json& one) { return one.at("property") == number; };
    const auto at = std::ranges::find_if(streams, is_it);
    return at == streams.end() ? nullptr : &*at;
  }
};

// Commands and tests; each with "; " before it.
std::string seen_elsewhere(const Sources& sources, const std::string& number) {
  std::string text;
  for (const Json& row : sources.explored) {
    const Json& falsified = row.at("falsified");
    if (std::ranges::find(falsified, Json(number)) == falsified.end()) continue;
    const std::string mode = row.at("mode");
    text += fmt::format("; `zeroproof explore {} --policy {}{}`",
                        row.at("scenario").get<std::string>(), row.at("policy").get<std::string>(),
                        mode == "graph_task_callback" ? "" : " --mode " + mode);
    break;
  }
  for (const Json& row : sources.elsewhere) {
    if (row.at("property") != number) continue;
    const std::string by = row.at("by");
    text += fmt::format("; {}`{}{}`", by.starts_with("train ") ? "" : "test ",
                        by.starts_with("train ") ? "zeroproof " : "", by);
  }
  return text;
}

std::string code(std::string_view text) {
  return fmt::format("`{}`", text);
}

std::string anchor_of(std::string number) {
  number[0] = static_cast<char>(number[0] - 'A' + 'a');
  return number;
}

std::string where_of(const Sources& sources, const std::string& number) {
  if (const Shown* const shown = sources.smallest(number))
    return fmt::format("{}, {} events", code(shown->id), shown->events);
  std::string text = "no fault";
  if (const Shown* const other = sources.in_other_cases(number))
    text = fmt::format("no smallest case of a fault, other runs of {} do", code(other->id));
  if (const Json* const stream = sources.stream(number))
    text += fmt::format("; [{}](timelines/properties.md#{})", stream->at("fact").get<std::string>(),
                        anchor_of(number));
  return text + seen_elsewhere(sources, number);
}

std::string catalogue_section(const Sources& sources) {
  std::string text = fmt::format(
      "{}\nWhat falsifies each, event by event: the smallest case of `zeroproof mutation` "
      "(`--replay` shows it; events as the command counts them), or else\nthe stream "
      "that its monitor is tested with, and the command or test in which it fails. Written by:\n\n"
      "    {}\n\n| property | falsified in |\n| --- | --- |\n",
      kHeading, kWrite);
  for (const Property* property : properties())
    text += fmt::format("| {} `{}` | {} |\n", property->number, property->id,
                        where_of(sources, std::string(property->number)));
  return text;
}

// The stream as `zeroproof show` draws events, bookkeeping too, with what the property finds.
std::string stream_timeline(const Json& stream) {
  const PropertyScript script(stream.at("broken").get<std::string>());
  const Scope scope = stream.value("scope", "trace") == "trace" ? Scope::trace : Scope::explore;
  PropertyRun run(scope, script.names());
  for (const HookEvent& event : script.events()) run.on_event(event);
  run.finish();
  std::vector<TimelineMark> marks;
  for (const Verdict& verdict : run.verdicts()) {
    if (verdict.property->number != stream.at("property").get<std::string>()) continue;
    for (const Finding& finding : verdict.findings) {
      const auto at = std::ranges::find(script.events(), finding.lc, &HookEvent::lc);
      const auto index = at == script.events().end() ? script.events().size() - 1
                                                     : std::size_t(at - script.events().begin());
      marks.push_back({index, fmt::format("{}{}: {}", finding.is_latent ? "latent, " : "",
                                          finding.property->id, finding.text)});
    }
  }
  EXPECT_FALSE(marks.empty()) << stream.at("property") << " finds nothing in its broken stream";
  return timeline_text(script.events(), script.names(), marks,
                       {.columns = 120, .shows_details = true, .palette = {}});
}

std::string streams_page(const Sources& sources) {
  std::string text = fmt::format(
      "# Timelines of properties that no smallest case of a fault falsifies\n\n"
      "What this page is for: seeing what each of them finds. Each is the stream of events in "
      "`tests/props/property_streams.json` that breaks it;\nthe repaired one beside it there holds "
      "(test `PropertyStreams`). docs/PROPERTIES.md says where else "
      "they fail.\n\nGenerated; do not edit. After a change:\n\n    {}\n",
      kWrite);
  for (const Property* property : properties()) {
    const std::string number(property->number);
    const Json* const stream = sources.stream(number);
    if (!stream || sources.smallest(number)) continue;
    text += fmt::format("\n## {}\n\n`{}`: {}. Here: {}.\n\n```\n{}```\n", number, property->id,
                        property->statement, stream->at("fact").get<std::string>(),
                        stream_timeline(*stream));
  }
  return text;
}

TEST(PropertyTimelines, Are_what_counterexamples_and_streams_show) {
  const Sources sources;
  const std::string section = catalogue_section(sources);
  EXPECT_NE(read_file(kCatalogue).find(section + "\n"), std::string::npos)
      << kCatalogue << " says otherwise; write it with\n"
      << kWrite << "\n"
      << section;
  EXPECT_EQ(read_file(kStreams), streams_page(sources)) << "write it with\n" << kWrite;
}

TEST(PropertyTimelines, Lead_somewhere_for_each_property) {
  const std::string page = read_file(kCatalogue);
  const std::size_t begin = page.find(kHeading);
  ASSERT_NE(begin, std::string::npos);
  for (const Property* property : properties()) {
    const std::string row = fmt::format("\n| {} `{}` | ", property->number, property->id);
    const std::size_t at = page.find(row, begin);
    ASSERT_NE(at, std::string::npos) << row;
    const std::size_t start = at + row.size();
    const std::string cell = page.substr(start, page.find('\n', start) - start);
    EXPECT_TRUE(cell.find("timelines/") != cell.npos || cell.find('`') != cell.npos) << cell;
    for (std::size_t link = cell.find("](timelines/"); link != cell.npos;
         link = cell.find("](timelines/", link + 1)) {
      const std::size_t hash = cell.find('#', link);
      const std::string file = cell.substr(link + 2, hash - link - 2);
      std::string heading = cell.substr(hash + 1, cell.find(')', hash) - hash - 1);
      heading[0] = static_cast<char>(heading[0] - 'a' + 'A');
      EXPECT_NE(read_file(ZP_SOURCE_DIR "/docs/" + file).find("\n## " + heading + "\n"),
                std::string::npos)
          << cell;
    }
  }
}

TEST(PropertyTimelines, DISABLED_Are_written) {
  const Sources sources;
  std::string page = read_file(kCatalogue);
  const std::size_t begin = page.find(kHeading);
  ASSERT_NE(begin, std::string::npos) << kCatalogue << " has lost its heading " << kHeading;
  const std::size_t end = std::min(page.find("\n## ", begin), page.size());
  page.replace(begin, end - begin, catalogue_section(sources));
  std::ofstream(kCatalogue) << page;
  std::ofstream(kStreams) << streams_page(sources);
}

}  // namespace
}  // namespace zeroproof
