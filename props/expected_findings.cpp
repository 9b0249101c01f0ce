#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/files/small_file.h"
#include "props/registry.h"
#include "props/verify.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 20;

// Distinct numbers in catalogue order.
std::vector<std::string> sorted_numbers(const std::set<const Property*>& properties) {
  std::vector<std::string> numbers;
  for (const Property* property : properties) numbers.emplace_back(property->number);
  return numbers;
}

std::vector<std::string> found_numbers(const TraceReplay& trace) {
  std::set<const Property*> properties;  // one array: addresses are in catalogue order
  if (trace.properties) {
    for (const Finding& finding : trace.properties->falsified) properties.insert(finding.property);
  }
  return sorted_numbers(properties);
}

std::string below(const std::string& path, const std::string& folder) {
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

// Why the trace differs from what is expected; empty when they agree.
std::string difference(const TraceReplay& trace, const std::vector<std::string>& expected) {
  if (trace.fault) return trace.fault->text;
  if (trace.queue && !trace.queue->holds()) {
    return trace.queue->first_mismatch ? trace.queue->first_mismatch->text : "queue level";
  }
  if (trace.state && trace.state->first_mismatch) return trace.state->first_mismatch->text;
  if (trace.structure_count > 0) return trace.structure.front().text;
  const std::vector<std::string> found = found_numbers(trace);
  if (found == expected) return {};
  return fmt::format("falsified [{}], expected [{}]", fmt::join(found, " "),
                     fmt::join(expected, " "));
}

Result<std::vector<std::string>> parse_numbers(const nlohmann::json& list,
                                               const std::string& where) {
  std::set<const Property*> properties;
  for (const auto& number : list) {
    const Property* property =
        number.is_string() ? find_property(number.get<std::string>()) : nullptr;
    if (property == nullptr) {
      return fail(ErrorCode::usage, fmt::format("{}: unknown property {}", where, number.dump()));
    }
    properties.insert(property);
  }
  return sorted_numbers(properties);
}

}  // namespace

Result<ExpectedFindings> read_expected_findings(const std::string& folder) {
  const std::string path = folder + "/expected.json";
  const auto text = read_small_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  const auto document = nlohmann::json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("falsified") ||
      !document["falsified"].is_object()) {
    return fail(
        ErrorCode::usage,
        fmt::format("{}: must be an object with \"falsified\": {{path: [P numbers]}}", path));
  }
  ExpectedFindings expected;
  for (const auto& [trace, list] : document["falsified"].items()) {
    auto numbers = parse_numbers(list, fmt::format("{}: /falsified/{}", path, trace));
    if (!numbers) return tl::unexpected(numbers.error());
    expected[trace] = std::move(*numbers);
  }
  return expected;
}

std::vector<std::string> unexpected_lines(const ReplayReport& report, const std::string& folder,
                                          const ExpectedFindings& expected) {
  std::vector<std::string> lines;
  std::set<std::string> seen;
  for (const TraceReplay& trace : report.traces) {
    const std::string name = below(trace.path, folder);
    seen.insert(name);
    const auto wanted = expected.find(name);
    const std::string what =
        difference(trace, wanted == expected.end() ? std::vector<std::string>() : wanted->second);
    if (!what.empty()) lines.push_back(fmt::format("{}: {}", name, what));
  }
  for (const auto& [name, numbers] : expected) {
    if (!seen.contains(name)) lines.push_back(fmt::format("{}: is missing", name));
  }
  return lines;
}

}  // namespace zeroproof
