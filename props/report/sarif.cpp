#include "props/report/sarif.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "props/report/json_values.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

// RFC 3986: paths of this machine as relative or file references.
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

OrderedJson rule_json(const LocatedFinding& finding) {
  OrderedJson rule = {{"id", finding.rule}};
  const std::string& statement = finding.statement.empty() ? finding.rule : finding.statement;
  rule["shortDescription"] = {{"text", visible(statement)}};
  std::string help = statement;
  if (!finding.source.empty()) help += fmt::format("\nSource: {}", finding.source);
  rule["help"] = {{"text", help}};
  if (!finding.number.empty()) rule["properties"] = {{"tags", {finding.number}}};
  return rule;
}

OrderedJson location_json(const LocatedFinding& finding) {
  OrderedJson location = OrderedJson::object();
  if (!finding.file.empty()) {
    location["physicalLocation"] = {
        {"artifactLocation", {{"uri", uri_of(finding.file)}}},
        {"region", {{"startLine", std::max<std::uint64_t>(finding.line, 1)}}}};
  }
  std::string name = finding.subject;
  if (finding.rank >= 0) name += fmt::format(" rank {}", finding.rank);
  if (finding.lc > 0) name += fmt::format(" lc {}", finding.lc);
  if (!name.empty()) location["logicalLocations"] = {{{"fullyQualifiedName", visible(name)}}};
  return location;
}

OrderedJson result_json(const LocatedFinding& finding, std::size_t rule_index) {
  OrderedJson result = {
      {"ruleId", finding.rule},
      {"ruleIndex", rule_index},
      {"level", finding.level == FindingLevel::error ? "error" : "warning"},
      {"message", {{"text", visible(finding.text)}}},
      {"locations", OrderedJson::array({location_json(finding)})},
      // Runs are compared by this: the same rule in the same place is the same finding.
      {"partialFingerprints",
       {{"zeroproofFinding/v1", visible(fmt::format("{} {} {} {}", finding.rule, finding.subject,
                                                    finding.rank, finding.lc))}}}};
  OrderedJson properties = OrderedJson::object();
  if (finding.rank >= 0) properties["rank"] = finding.rank;
  if (finding.lc > 0) properties["lc"] = finding.lc;
  if (!finding.reproduce.empty()) properties["reproduce"] = "zeroproof " + finding.reproduce;
  if (!properties.empty()) result["properties"] = properties;
  return result;
}

}  // namespace

std::string sarif_text(std::string_view run, std::string_view version,
                       const LocatedFindings& findings) {
  std::map<std::string, std::size_t> index;
  OrderedJson rules = OrderedJson::array();
  OrderedJson results = OrderedJson::array();
  for (const LocatedFinding& finding : findings) {
    const auto [at, is_new] = index.try_emplace(finding.rule, index.size());
    if (is_new) rules.push_back(rule_json(finding));
    results.push_back(result_json(finding, at->second));
  }
  const OrderedJson driver = {{"name", "zeroproof"}, {"version", version}, {"rules", rules}};
  return document_text<OrderedJson>(
      {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
       {"version", "2.1.0"},
       {"runs", OrderedJson::array({{{"tool", {{"driver", driver}}},
                                     {"automationDetails", {{"id", fmt::format("{}/", run)}}},
                                     {"columnKind", "unicodeCodePoints"},
                                     {"results", results}}})}});
}

}  // namespace zeroproof
