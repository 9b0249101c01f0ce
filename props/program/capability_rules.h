#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof::program {

// What a subject can do with one member of a part.
struct MemberRule {
  bool must_be_set = false;  // "set": only another value than the default
  // One of these alone, also where the member is left out; of a body, the statements that may
  // stand in it. Empty: any value.
  std::vector<nlohmann::json> values = {};
};
// By the member's name. Of a member without a row, only the default value.
using MemberRules = std::map<std::string, MemberRule, std::less<>>;

// The rows of a document of the schema zeroproof.capabilities/1.
struct CapabilityRules {
  std::map<std::string, MemberRules, std::less<>> parts;  // "world", "linear", "forward"
  std::set<std::string, std::less<>> kinds;               // modules and statements that are listed
  MemberRules config;                                     // by JSON pointer
  bool has_refusals = false;
  // The errors of statements that may be refused; empty: any.
  std::set<std::string, std::less<>> refusals;
  int engines = 1;
};

// Errors: as Capabilities::parse.
Result<CapabilityRules> parse_capability_rules(std::string_view json, std::string_view where);

}  // namespace zeroproof::program
