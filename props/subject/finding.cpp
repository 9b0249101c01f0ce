#include "props/subject/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "props/program/json_lines.h"
#include "props/program/program_json.h"
#include "sim/fingerprint.h"

namespace zeroproof::subject {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kStemWords = 48;  // characters of a signature in a file's name

// Letters and digits, all else as single dashes.
std::string slug(std::string_view text) {
  std::string words;
  for (const char letter : text) {
    if (words.size() == kStemWords) break;
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      words += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    else if (!words.empty() && words.back() != '-')
      words += '-';
  }
  while (words.ends_with('-')) words.pop_back();
  return words;
}

OrderedJson versions_json(const SubjectFinding& finding) {
  OrderedJson versions = OrderedJson::object();
  for (const auto& [name, version] : finding.versions) versions[name] = version;
  return versions;
}

// The order of programs of one signature: minimised before others, then the shorter document.
auto rank_of(const SubjectFinding& finding) {
  std::string line = program::program_line(finding.program);
  const std::size_t size = line.size();
  return std::tuple(finding.is_flaky(), !finding.is_minimized(), size, std::move(line), finding.id,
                    version_line(finding.versions));
}

// Reads what finding_json wrote; a member that is missing or of another type throws.
SubjectFinding read(const OrderedJson& document, std::string_view where) {
  SubjectFinding finding;
  document.at("engine").get_to(finding.engine);
  document.at("settings").get_to(finding.settings);
  for (const auto& [name, version] : document.at("versions").items())
    finding.versions.emplace_back(name, version.get<std::string>());
  document.at("seed").get_to(finding.id.seed);
  document.at("case").get_to(finding.id.number);
  finding.id.candidate = document.value("candidate", std::uint64_t{0});
  document.at("statements_before").get_to(finding.statements_before);
  document.at("shrink_runs").get_to(finding.shrink_runs);
  document.at("runs").get_to(finding.runs);
  document.at("same_runs").get_to(finding.same_runs);
  document.at("seen").get_to(finding.seen);
  auto verdict = parse_verdict(document.at("verdict").dump(), fmt::format("{}: /verdict", where));
  if (!verdict) throw std::runtime_error(verdict.error().text);
  finding.verdict = std::move(*verdict);
  auto program =
      program::parse_program(document.at("program").dump(), fmt::format("{}: /program", where));
  if (!program) throw std::runtime_error(program.error().text);
  finding.program = std::move(*program);
  return finding;
}

}  // namespace

std::uint64_t SubjectFinding::cases() const {
  return std::accumulate(seen.begin(), seen.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& one) { return sum + one.second; });
}

std::string SubjectFinding::file_stem() const {
  StateBytes identity;
  identity.add(engine).add(settings.size());
  for (const std::string& setting : settings) identity.add(setting);
  identity.add(verdict.group());
  const auto low = static_cast<std::uint32_t>(identity.fingerprint().low);
  return fmt::format("{}-{:08x}", slug(verdict.known ? verdict.known->name : verdict.signature),
                     low);
}

std::string finding_json(const SubjectFinding& finding) {
  const OrderedJson document = {
      {"schema", kFindingSchema},
      {"engine", finding.engine},
      {"settings", finding.settings},
      {"versions", versions_json(finding)},
      {"verdict", OrderedJson::parse(verdict_json(finding.verdict))},
      {"seed", finding.id.seed},
      {"case", finding.id.number},
      {"candidate", finding.id.candidate},
      {"statements_before", finding.statements_before},
      {"shrink_runs", finding.shrink_runs},
      {"runs", finding.runs},
      {"same_runs", finding.same_runs},
      {"seen", finding.seen},
      {"program", OrderedJson::parse(program::program_line(finding.program))}};
  return program::json_lines(document.dump());
}

Result<SubjectFinding> parse_finding(std::string_view json, std::string_view where) {
  const OrderedJson document = OrderedJson::parse(json, nullptr, false);
  if (!document.is_object() || document.value("schema", OrderedJson()) != kFindingSchema)
    return fail(ErrorCode::usage, fmt::format("{}: no document of {}", where, kFindingSchema));
  try {
    return read(document, where);
  } catch (const std::exception& wrong) {
    return fail(ErrorCode::usage, fmt::format("{}: {}", where, wrong.what()));
  }
}

SubjectFinding merged(const SubjectFinding& a, const SubjectFinding& b) {
  SubjectFinding result = rank_of(b) < rank_of(a) ? b : a;
  for (const SubjectFinding* const one : {&a, &b})
    for (const auto& [search, cases] : one->seen)
      result.seen[search] = std::max(result.seen[search], cases);
  return result;
}

}  // namespace zeroproof::subject
