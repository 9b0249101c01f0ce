#pragma once

#include <string>
#include <vector>

#include "props/replay/properties_level.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

// Parts that several documents share. Json is nlohmann::ordered_json, whose header belongs in .cpp
// files.

template <class Json>
Json finding_json(const Finding& finding) {
  return {{"id", finding.property->id}, {"number", finding.property->number},
          {"lc", finding.lc},           {"rank", finding.rank},
          {"event", finding.event},     {"text", finding.text}};
}

template <class Json>
Json properties_json(const PropertiesReport& properties) {
  Json level = {{"held", Json::array()},
                {"falsified", Json::array()},
                {"latent", Json::array()},
                {"not_applicable", Json::array()}};
  for (const Property* property : properties.held) level["held"].push_back(property->id);
  for (const Finding& finding : properties.falsified) {
    level["falsified"].push_back(finding_json<Json>(finding));
  }
  for (const Finding& finding : properties.latent) {
    level["latent"].push_back(finding_json<Json>(finding));
  }
  for (const NotApplicable& one : properties.not_applicable) {
    level["not_applicable"].push_back(one.property->id);
  }
  return level;
}

template <class Json>
Json verdicts_json(const std::vector<Verdict>& verdicts) {
  PropertiesReport report;
  for (const Verdict& verdict : verdicts) report.add(verdict);
  return properties_json<Json>(report);
}

// Bytes that are no UTF-8, as paths may have them, become replacement characters.
template <class Json>
std::string document_text(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace zeroproof
