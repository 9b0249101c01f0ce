#include "props/program/capabilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "model/check.h"
#include "props/program/capability_rules.h"
#include "props/program/refusals.h"
#include "props/program/value_json.h"

namespace zeroproof::program {

struct Capabilities::Table {
  CapabilityRules rules;
};

namespace {

using Json = nlohmann::json;

bool is_among(const Json& value, const std::vector<Json>& values) {
  return values.empty() || std::ranges::find(values, value) != values.end();
}

// Walks one part down to the first thing that the rules do not have.
class LackSearch {
 public:
  explicit LackSearch(const CapabilityRules& rules) : rules_(rules) {}

  template <Described Struct>
  std::optional<std::string> in(const Struct& part) {
    look(part);
    return std::move(lack_);
  }

  std::optional<std::string> in(const ZeroConfig& config) {
    look(config);
    return std::move(lack_);
  }

 private:
  template <Described Struct>
  void look(const Struct& part) {
    visit_members<Struct>([&](const auto& row) {
      if (!lack_) look_at(part, row);
    });
  }
  template <class T>
  void look(const std::vector<T>& values) {
    for (const T& value : values)
      if (!lack_) look(value);
  }
  template <class T>
  void look(const std::optional<T>& value) {
    if (value) look(*value);
  }
  template <class T>
  void look(const T& /*value*/) {}

  void look(const ZeroConfig& config) {
    const Json difference = config_difference_json(config);
    if (!difference.empty()) check_leaves(difference.flatten());
    if (!lack_) check_defaults(config);
  }

  void check_leaves(const Json& leaves) {
    for (const auto& [pointer, value] : leaves.items())
      if (!can_configure(pointer, value)) lack_ = fmt::format("config{} {}", pointer, value.dump());
  }

  // A list of values is of all that a key may have, the default as well.
  void check_defaults(const ZeroConfig& config) {
    const Json whole = config_json(config);
    for (const auto& [pointer, rule] : rules_.config) {
      const Json::json_pointer at(pointer);
      if (!rule.values.empty() && whole.contains(at) && !is_among(whole[at], rule.values))
        lack_ = fmt::format("config{} {}", pointer, whole[at].dump());
    }
  }

  // The rule of a key holds for all below it.
  bool can_configure(std::string pointer, const Json& value) const {
    while (!pointer.empty()) {
      if (const auto at = rules_.config.find(pointer); at != rules_.config.end())
        return is_among(value, at->second.values);
      pointer.resize(pointer.rfind('/'));
    }
    return false;
  }

  template <class Struct, class Value>
  void look_at(const Struct& part, const Member<Struct, Value>& row) {
    const std::string_view name = Description<Struct>::name;
    check_rule(name, part, row);
    if (!lack_) look(part.*row.pointer);
  }

  template <class Struct, class... Kinds>
  void look_at(const Struct& part, const Member<Struct, std::variant<Kinds...>>& row) {
    const auto look_at_kind = [&]<class Kind>(const Kind& kind) {
      const std::string_view name = Description<Kind>::name;
      if (rules_.kinds.contains(name))
        look(kind);
      else
        lack_ = name;
    };
    std::visit(look_at_kind, part.*row.pointer);
  }

  template <class Struct, class Value>
  void check_rule(std::string_view part_name, const Struct& part,
                  const Member<Struct, Value>& row) {
    const MemberRule* const rule = find_rule(part_name, row.name);
    const bool is_usual = row.role == Role::optional && has_default(part, row);
    if (is_usual && rule && rule->must_be_set)
      lack_ = fmt::format("{} without {}", part_name, row.name);
    const bool is_free = is_usual || row.role != Role::optional || is_whole(part_name);
    if (!rule && !is_free)
      lack_ = fmt::format("{}.{}", part_name, row.name);
    else if (rule)
      check_value(part_name, row.name, part.*row.pointer, rule->values);
  }

  template <class Value>
  void check_value(std::string_view part, std::string_view member, const Value& value,
                   const std::vector<Json>& values) {
    if (!is_among(Json(written(value)), values))
      lack_ = fmt::format("{}.{} {}", part, member, written(value).dump());
  }
  // Of a body, which statements.
  void check_value(std::string_view part, std::string_view member, const Body& body,
                   const std::vector<Json>& values) {
    for (const Statement& statement : body) {
      const std::string kind(kKindNames<StatementKind>[statement.kind.index()]);
      if (!is_among(kind, values)) lack_ = fmt::format("{}.{} with {}", part, member, kind);
    }
  }

  // A program's parts have rules of their own.
  static bool is_whole(std::string_view part) { return part == Description<Program>::name; }

  const MemberRule* find_rule(std::string_view part, std::string_view member) const {
    const auto rules = rules_.parts.find(part);
    if (rules == rules_.parts.end()) return nullptr;
    const auto rule = rules->second.find(member);
    return rule == rules->second.end() ? nullptr : &rule->second;
  }

  const CapabilityRules& rules_;
  std::optional<std::string> lack_;
};

}  // namespace

Result<Capabilities> Capabilities::parse(std::string_view json, std::string_view where) {
  auto rules = parse_capability_rules(json, where);
  if (!rules) return tl::unexpected(rules.error());
  return Capabilities(std::make_shared<const Table>(Table{std::move(*rules)}));
}

std::optional<std::string> Capabilities::lack(const World& world) const {
  return LackSearch(table_->rules).in(world);
}
std::optional<std::string> Capabilities::lack(const Data& data) const {
  return LackSearch(table_->rules).in(data);
}
std::optional<std::string> Capabilities::lack(const ZeroConfig& config) const {
  return LackSearch(table_->rules).in(config);
}
std::optional<std::string> Capabilities::lack(const EngineSpec& engine) const {
  return LackSearch(table_->rules).in(engine);
}
std::optional<std::string> Capabilities::lack(const Model& model) const {
  return LackSearch(table_->rules).in(model);
}
std::optional<std::string> Capabilities::lack(const Statement& statement) const {
  return LackSearch(table_->rules).in(statement);
}

std::optional<std::string> Capabilities::lack(const Program& program) const {
  if (auto lacking = LackSearch(table_->rules).in(program)) return lacking;
  if (static_cast<int>(program.engines.size()) > engines()) return "several engines";
  if (has_refusals() && table_->rules.refusals.empty()) return std::nullopt;
  const auto contract = Contract::of(program);
  ZP_CHECK(contract.has_value(), "a drawn program has a contract");
  for (const auto& [place, name] : refusals_of(program, *contract))
    if (!table_->rules.refusals.contains(name) || place.ends_with("/hook")) return "refusals";
  return std::nullopt;
}

bool Capabilities::can_refuse(const Expectation& expectation) const {
  if (!has_refusals() || table_->rules.refusals.empty()) return has_refusals();
  return expectation.refusal &&
         table_->rules.refusals.contains(engine_error_name(*expectation.refusal));
}

bool Capabilities::has_refusals() const {
  return table_->rules.has_refusals;
}

int Capabilities::engines() const {
  return table_->rules.engines;
}

int Capabilities::some_ranks() const {
  const auto world = table_->rules.parts.find("world");
  if (world == table_->rules.parts.end()) return 1;
  const auto ranks = world->second.find("ranks");
  if (ranks == world->second.end() || ranks->second.values.empty()) return 1;
  const Json& first = ranks->second.values.front();
  return first.is_number_integer() ? first.get<int>() : 1;
}

}  // namespace zeroproof::program
