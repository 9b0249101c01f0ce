#include "props/program/capability_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "model/nearest_name.h"
#include "props/program/config_document.h"
#include "props/program/config_domains.h"
#include "props/program/program_description.h"

namespace zeroproof::program {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string_view>;

constexpr std::string_view kRulesSchema = "zeroproof.capabilities/1";
constexpr std::array<std::string_view, 11> kRuleKeys = {
    "schema", "subject", "version", "refusals", "engines",   "world",
    "data",   "model",   "engine",  "modules",  "statements"};

// Leaves the descent; parse_capability_rules turns it into a Result.
struct WrongRules {
  std::string text;  // after the file's name
};

[[noreturn]] void reject(const std::string& pointer, std::string_view what) {
  throw WrongRules{fmt::format("{}: {}", pointer.empty() ? "/" : pointer, what)};
}

void require_known(const std::string& pointer, std::string_view name, const Names& known) {
  if (std::ranges::find(known, name) == known.end())
    reject(fmt::format("{}/{}", pointer, name),
           fmt::format("unknown key; {}", did_you_mean(name, known)));
}

void require_object(const std::string& pointer, const Json& value) {
  if (!value.is_object()) reject(pointer, "give an object");
}

template <Described Struct>
Names members_of() {
  Names names;
  const auto add = [&](const auto& row) {
    if (row.role != Role::kind) names.push_back(row.name);
  };
  visit_members<Struct>(add);
  return names;
}

// The parts below a key of the document, and their members.
using KnownParts = std::map<std::string_view, Names>;

template <class... Kinds>
KnownParts kinds_of(const std::variant<Kinds...>* /*type*/) {
  return {{Description<Kinds>::name, members_of<Kinds>()}...};
}

KnownParts known_statements() {
  KnownParts known = kinds_of(static_cast<const StatementKind*>(nullptr));
  known["hook"] = members_of<Hook>();
  known["skip"] = members_of<Skip>();
  known["spike"] = members_of<Spike>();
  return known;
}

MemberRule rule_of(const std::string& pointer, const Json& value) {
  if (value.is_boolean() && value.get<bool>()) return {};
  if (value == "set") return {.must_be_set = true};
  if (value.is_array() && !value.empty()) return {.values = {value.begin(), value.end()}};
  reject(pointer, "give true, \"set\" or a list of values");
}

MemberRules rules_of(const std::string& pointer, const Json& members, const Names& known) {
  require_object(pointer, members);
  MemberRules rules;
  for (const auto& [name, value] : members.items()) {
    require_known(pointer, name, known);
    rules[name] = rule_of(fmt::format("{}/{}", pointer, name), value);
  }
  return rules;
}

// Keys of a configuration: those that have a value, and those that cases set.
bool is_config_key(const std::string& pointer) {
  static const Json kDocument = Json::parse(config_document({}));
  if (!pointer.starts_with('/')) return false;
  if (kDocument.contains(Json::json_pointer(pointer))) return true;
  const auto is_above = [&](const ConfigDomain& domain) {
    return (std::string(domain.key) + "/").starts_with(pointer + "/");
  };
  return std::ranges::any_of(config_domains(), is_above);
}

class RulesReader {
 public:
  explicit RulesReader(const Json& document) : document_(document) {}

  CapabilityRules read() {
    require_object("", document_);
    Names keys(kRuleKeys.begin(), kRuleKeys.end());
    keys.push_back("config");
    for (const auto& [name, value] : document_.items()) require_known("", name, keys);
    if (document_.value("schema", Json()) != kRulesSchema)
      reject("/schema", fmt::format("give \"{}\"", kRulesSchema));
    read_numbers();
    read_part("world", members_of<World>());
    read_part("data", members_of<Data>());
    read_part("model", members_of<Model>());
    read_part("engine", members_of<EngineSpec>());
    read_kinds("modules", kinds_of(static_cast<const ModuleKind*>(nullptr)));
    read_kinds("statements", known_statements());
    read_config();
    return std::move(rules_);
  }

 private:
  void read_numbers() {
    const Json refusals = document_.value("refusals", Json(false));
    const auto is_text = [](const Json& name) { return name.is_string(); };
    const bool is_list = refusals.is_array() && std::ranges::all_of(refusals, is_text);
    if (!refusals.is_boolean() && !is_list)
      reject("/refusals", "give true, false or a list of errors' names");
    rules_.has_refusals = is_list ? !refusals.empty() : refusals == true;
    if (is_list) rules_.refusals = refusals.get<std::set<std::string, std::less<>>>();
    const Json engines = document_.value("engines", Json(1));
    if (!engines.is_number_integer() || engines.get<int>() < 1)
      reject("/engines", "give an integer above 0");
    rules_.engines = engines.get<int>();
  }

  void read_part(const std::string& name, const Names& members) {
    if (document_.contains(name))
      rules_.parts[name] = rules_of("/" + name, document_[name], members);
  }

  void read_kinds(const std::string& key, const KnownParts& known) {
    if (!document_.contains(key)) return;
    require_object("/" + key, document_[key]);
    Names names;
    for (const auto& [name, members] : known) names.push_back(name);
    for (const auto& [name, members] : document_[key].items()) {
      require_known("/" + key, name, names);
      rules_.parts[name] = rules_of(fmt::format("/{}/{}", key, name), members, known.at(name));
      rules_.kinds.insert(name);
    }
  }

  void read_config() {
    const Json config = document_.value("config", Json::object());
    require_object("/config", config);
    for (const auto& [pointer, value] : config.items()) {
      if (!is_config_key(pointer))
        reject("/config", fmt::format("'{}' is no JSON pointer to a key of a ds_config.json "
                                      "(docs/reference/config.md)",
                                      pointer));
      rules_.config[pointer] = rule_of("/config/" + pointer, value);
    }
  }

  const Json& document_;
  CapabilityRules rules_;
};

}  // namespace

Result<CapabilityRules> parse_capability_rules(std::string_view json, std::string_view where) {
  const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return fail(ErrorCode::unreadable, fmt::format("{}: no JSON", where));
  try {
    return RulesReader(document).read();
  } catch (const WrongRules& wrong) {
    return fail(ErrorCode::usage, fmt::format("{}: {}", where, wrong.text));
  }
}

}  // namespace zeroproof::program
