#include "tests/mutation/hazard_releases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "tests/read_file.h"

namespace zeroproof::cli_test {
namespace {

const std::filesystem::path kFolder = ZP_SOURCE_DIR "/tests/data/hazards";

HazardCase read_case(const std::string& line) {
  static const std::regex pattern(
      R"((\S+) (CONFIRMED|absent|control|not run) \((.*)\): observed (.*); expected (.*))");
  std::smatch found;
  if (!std::regex_match(line, found, pattern)) return {"", "unreadable", "", "", line};
  return {found[1], found[2], found[3], found[4], line};
}

HazardRelease read_release(const std::filesystem::path& path) {
  HazardRelease read;
  const auto release = Release::parse(path.stem().string());
  if (release.has_value()) read.release = *release;
  std::istringstream text(read_file(path.string()));
  std::getline(text, read.header);
  for (std::string line; std::getline(text, line);) read.cases.push_back(read_case(line));
  return read;
}

// What the first release that confirms the case observed.
std::string first_symptom(const HazardCase& wanted, const std::vector<HazardRelease>& releases) {
  for (const HazardRelease& release : releases)
    for (const HazardCase& one : release.cases)
      if (one.hazard == wanted.hazard && one.name == wanted.name && one.word == "CONFIRMED")
        return one.observed;
  return "";
}

std::string counted(const std::string& word, std::size_t count, std::size_t of) {
  if (count == of) return word;
  return count == 0 ? "" : fmt::format("{} in {} of {} cases", word, count, of);
}

}  // namespace

std::vector<HazardRelease> read_hazard_releases() {
  std::vector<HazardRelease> releases;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().filename().string().starts_with("deepspeed-"))
      releases.push_back(read_release(entry.path()));
  std::ranges::sort(releases, {}, &HazardRelease::release);
  return releases;
}

std::string hazard_cell(const std::string& hazard, const std::vector<HazardRelease>& releases) {
  std::size_t confirmed = 0, absent = 0, not_run = 0, cases = 0;
  std::map<std::string, std::size_t> different;  // cases by what they observed
  for (const HazardCase& one : releases.back().cases) {
    if (one.hazard != hazard || one.word == "control") continue;
    ++cases;
    absent += one.word == "absent";
    not_run += one.word == "not run";
    if (one.word != "CONFIRMED") continue;
    if (one.observed == first_symptom(one, releases))
      ++confirmed;
    else
      ++different[one.observed];
  }
  if (cases == not_run) return "not run";
  std::vector<std::string> words{counted("confirmed", confirmed, cases)};
  for (const auto& [observed, count] : different)
    words.push_back(counted(fmt::format("different ({})", observed), count, cases));
  words.push_back(counted("absent", absent, cases));
  words.push_back(counted("not run", not_run, cases));
  std::erase(words, "");
  return fmt::format("{}", fmt::join(words, "; "));
}

bool is_confirmed(const std::string& hazard, const HazardRelease& release) {
  return std::ranges::any_of(release.cases, [&](const HazardCase& one) {
    return one.hazard == hazard && one.word == "CONFIRMED";
  });
}

}  // namespace zeroproof::cli_test
