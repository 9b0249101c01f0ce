// docs/timelines: for every modelled fault what `zeroproof mutation ID --replay` prints
// of its smallest case, cut to what is near the findings.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "props/mutation/hunt.h"
#include "tests/cli/command_line.h"
#include "tests/mutation/counterexamples.h"

namespace zeroproof::cli_test {
namespace {

using mutation::Fault;
using Lines = std::vector<std::string>;

constexpr std::size_t kLinesMax = 40;  // of one timeline
constexpr const char* kWrite =
    "build/dev/bin/zeroproof_mutation_tests --gtest_also_run_disabled_tests "
    "--gtest_filter='*FaultTimelines.DISABLED_Are_written*'";

std::string path_of(char letter) {
  return fmt::format("{}/docs/{}", ZP_SOURCE_DIR, timeline_page({&letter, 1}));
}

// One event of a timeline with the findings marked below it.
struct Moment {
  Lines lines;
  bool is_marked = false;
};

// Clocks end in the column in which the heading's "lc" does.
bool begins_moment(const std::string& line, std::size_t clock_end) {
  return line.size() > clock_end && std::isdigit(static_cast<unsigned char>(line[clock_end - 1])) &&
         line.compare(clock_end, 2, "  ") == 0;
}

// Which of the moments are at most `before` ahead of a marked one, or a quarter of that behind it.
// Where nothing is marked, the run ended in the last of them.
std::vector<bool> near_marks(const std::vector<Moment>& moments, std::size_t before) {
  std::vector<bool> is_near(moments.size());
  const bool has_marks = std::ranges::any_of(moments, &Moment::is_marked);
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (!moments[i].is_marked && (has_marks || i + 1 != moments.size())) continue;
    const std::size_t end = std::min(i + before / 4 + 1, moments.size());
    std::fill(is_near.begin() + static_cast<std::ptrdiff_t>(i - std::min(i, before)),
              is_near.begin() + static_cast<std::ptrdiff_t>(end), true);
  }
  return is_near;
}

std::size_t count_lines(const std::vector<Moment>& moments, const std::vector<bool>& is_kept) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < moments.size(); ++i)
    if (is_kept[i]) count += moments[i].lines.size();
  return count;
}

// As many as there is room for; what is marked always stays.
std::vector<bool> kept_moments(const std::vector<Moment>& moments) {
  std::size_t before = moments.size() * 4;
  while (before > 0 && count_lines(moments, near_marks(moments, before)) > kLinesMax) --before;
  return near_marks(moments, before);
}

std::string cut_text(const std::vector<Moment>& moments, std::size_t clock_end) {
  const std::vector<bool> is_kept = kept_moments(moments);
  std::string text;
  std::size_t dropped = 0;
  const auto tell_dropped = [&] {
    if (dropped > 0) text += fmt::format("{:>{}}  events left out: {}\n", "…", clock_end, dropped);
    dropped = 0;
  };
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (!is_kept[i]) {
      ++dropped;
      continue;
    }
    tell_dropped();
    for (const std::string& line : moments[i].lines) text += line + "\n";
  }
  tell_dropped();
  return text;
}

// What the command printed: the case, what is falsified, then the timeline, of which all but what
// is near its marks is left out.
std::string shortened(const std::string& printed) {
  std::istringstream lines(printed);
  std::string head;
  std::size_t clock_end = 0;
  std::vector<Moment> moments;
  for (std::string line; std::getline(lines, line);) {
    if (clock_end > 0) {
      if (begins_moment(line, clock_end))
        moments.push_back({.lines = {}, .is_marked = line.starts_with(">>")});
      if (!moments.empty()) moments.back().lines.push_back(line);
      continue;
    }
    const std::size_t first = line.find_first_not_of(' ');
    if (first != line.npos && first > 2 && line.compare(first, 2, "lc") == 0) clock_end = first + 2;
    if (!line.starts_with("seed ")) head += line + "\n";
  }
  return head + cut_text(moments, clock_end);
}

CommandResult replayed(const Fault& fault, const std::string& schedule) {
  return run_shell(fmt::format(
      "env -u GITHUB_ACTIONS -u CLICOLOR_FORCE COLUMNS=120 {} mutation {} --replay '{}'", ZP_BINARY,
      fault.id, schedule));
}

std::string what(const Fault& fault) {
  if (fault.is_further()) return fmt::format("A further fault: {}.", fault.sentence);
  return fmt::format("`{}`, tier {}: {}.", fault.row().slug, fault.row().tier, fault.sentence);
}

struct Section {
  std::string id;
  std::string text;
  std::string trouble;  // why it has no timeline though a hunt has found it
};

Section section_of(const Fault& fault, const std::map<std::string, std::string>& schedules) {
  Section section{std::string(fault.id), fmt::format("## {}\n\n{}\n\n", fault.id, what(fault)), ""};
  const auto schedule = schedules.find(section.id);
  if (schedule == schedules.end()) {
    section.text += "No case is kept that shows it.\n\n";
    return section;
  }
  const CommandResult shown = replayed(fault, schedule->second);
  section.text +=
      fmt::format("    zeroproof mutation {} --replay '{}'\n\n", fault.id, schedule->second);
  if (shown.exit_code == 0) {
    section.text += "```\n" + shortened(shown.out) + "```\n\n";
  } else {
    section.text += "This case does not show it any more: it has to be hunted again.\n\n";
    section.trouble = fmt::format(
        "{}: its counterexample in tests/mutation/*.json does not show its fault any more "
        "(exit code "
        "{}): hunt it again with 'zeroproof mutation {} --json', then write the pages "
        "with\n{}\n{}{}",
        fault.id, shown.exit_code, fault.id, kWrite, shown.out, shown.err);
  }
  return section;
}

std::vector<const Fault*> entries_of(char letter) {
  std::vector<const Fault*> chosen;
  for (const Fault* fault : mutation::hunted_faults())
    if (fault->id[0] == letter && fault->is_modelled()) chosen.push_back(fault);
  return chosen;
}

std::set<char> letters() {
  std::set<char> letters;
  for (const Fault* fault : mutation::hunted_faults())
    if (fault->is_modelled()) letters.insert(fault->id[0]);
  return letters;
}

std::vector<Section> sections_of(char letter) {
  const auto schedules = pinned_schedules();
  std::vector<Section> sections;
  for (const Fault* fault : entries_of(letter)) sections.push_back(section_of(*fault, schedules));
  return sections;
}

std::string page_of(char letter, const std::vector<Section>& sections) {
  std::string text = fmt::format(
      "# Timelines of mutation testing: {}\n\n"
      "What this page is for: seeing what each mutated bug does, in the smallest case that shows "
      "it. Every section is what its command\nprints at 120 columns: the case, what the fault "
      "falsifies, that the unmutated engine holds, and the events of all ranks with the\nfindings "
      "marked (`>>`). Of a long timeline the {} lines nearest to the findings stay. "
      "docs/MUTATION.md "
      "says how cases are found.\n\nGenerated from the registry and the counterexamples of "
      "`tests/mutation/*.json`; do not edit. After a change:\n\n    {}\n\n",
      letter, kLinesMax, kWrite);
  for (const Section& section : sections) text += section.text;
  text.pop_back();
  return text;
}

class FaultTimelines : public ::testing::TestWithParam<char> {};

TEST_P(FaultTimelines, Are_what_the_command_prints) {
  const std::string page = read_file(path_of(GetParam()));
  const std::vector<Section> sections = sections_of(GetParam());
  for (const Section& section : sections) {
    EXPECT_TRUE(section.trouble.empty()) << section.trouble;
    const std::string end = section.text.substr(0, section.text.size() - 1);
    EXPECT_NE(page.find(end), page.npos)
        << section.id << " is told otherwise in " << path_of(GetParam()) << "; write it with\n"
        << kWrite << "\n"
        << section.text;
  }
  EXPECT_TRUE(page == page_of(GetParam(), sections))
      << path_of(GetParam()) << " has more, or another order; write it with\n"
      << kWrite;
}

TEST_P(FaultTimelines, DISABLED_Are_written) {
  const std::vector<Section> sections = sections_of(GetParam());
  for (const Section& section : sections) EXPECT_TRUE(section.trouble.empty()) << section.trouble;
  std::filesystem::create_directories(std::filesystem::path(path_of(GetParam())).parent_path());
  write_file(path_of(GetParam()), page_of(GetParam(), sections));
}

INSTANTIATE_TEST_SUITE_P(Of, FaultTimelines, ::testing::ValuesIn(letters()),
                         [](const auto& letter) { return std::string(1, letter.param); });

TEST(FaultTimelinePages, Are_one_for_each_letter_with_a_heading_for_each_fault) {
  for (const char letter : letters()) {
    const std::string page = read_file(path_of(letter));
    for (const Fault* fault : entries_of(letter))
      EXPECT_NE(page.find(fmt::format("\n## {}\n", fault->id)), page.npos) << fault->id;
  }
  for (const auto& file : std::filesystem::directory_iterator(ZP_SOURCE_DIR "/docs/timelines")) {
    const std::string name = file.path().stem().string();
    EXPECT_TRUE(name.size() > 1 || letters().contains(name[0])) << file.path();
  }
}

}  // namespace
}  // namespace zeroproof::cli_test
