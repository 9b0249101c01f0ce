// `zeroproof list`: what exists.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/runtime/registry.h"
#include "model/check.h"
#include "model/nearest_name.h"
#include "props/cli/verb.h"
#include "props/registry.h"
#include "props/report/table.h"
#include "props/scenario.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson scenarios() {
  OrderedJson list = OrderedJson::array();
  for (const ScenarioFile& file : builtin_scenarios()) {
    const auto scenario = parse_scenario(file.text, file.id);
    ZP_CHECK(scenario.has_value(), "a built-in scenario is wrong: " + scenario.error().text);
    list.push_back(
        {{"id", scenario->id}, {"title", scenario->title}, {"source", scenario->source}});
  }
  // Models of their own, each with a search of its own
  // (docs/explanation/how_orders_are_explored.md).
  list.push_back(
      {{"id", "zero_epilogue"},
       {"title", "the common model on which explorers are compared; --set P=2 --set N=6"},
       {"source", "docs/explanation/how_orders_are_explored.md"}});
  list.push_back({{"id", "hook_order"},
                  {"title", "real engines whose hooks fire in any order, at hook and seam level"},
                  {"source", "docs/explanation/how_orders_are_explored.md"}});
  return list;
}

OrderedJson policies() {
  OrderedJson list = OrderedJson::array();
  for (const PolicyInfo& info : policy_catalogue()) {
    OrderedJson modes = {policy_mode_name(PolicyMode::graph_task_callback)};
    if (info.can_count) modes.push_back(policy_mode_name(PolicyMode::count_fallback));
    list.push_back({{"id", info.id},
                    {"releases", info.releases ? info.releases_text() : "none"},
                    {"former_id", info.former_id},
                    {"description", info.description},
                    {"source", info.source},
                    {"modes", modes}});
  }
  return list;
}

OrderedJson scopes_of(const Property& property) {
  OrderedJson scopes = OrderedJson::array();
  if (property.scopes.has(Scope::trace)) scopes.push_back("trace");
  if (property.scopes.has(Scope::state)) scopes.push_back("state");
  if (property.scopes.has(Scope::explore)) scopes.push_back("explore");
  if (property.scopes.has(Scope::train)) scopes.push_back("train");
  if (property.scopes.has(Scope::access)) scopes.push_back("access");
  return scopes;
}

OrderedJson properties() {
  OrderedJson list = OrderedJson::array();
  for (const Property& property : all_properties()) {
    list.push_back({{"id", property.id},
                    {"number", property.number},
                    {"statement", property.statement},
                    {"source", property.source},
                    {"scopes", scopes_of(property)}});
  }
  return list;
}

OrderedJson schedulers() {
  return {{{"id", "exhaustive"}, {"description", "every legal order; a state is explored once"}},
          {{"id", "random"}, {"description", "uniform choices from --seed, until the budget ends"}},
          {{"id", "fifo"}, {"description", "one execution, always the first option"}},
          {{"id", "dpor"},
           {"description", "zero_epilogue: one execution of each happens-before class"}},
          {{"id", "pct:D"},
           {"description", "random priorities with D-1 changes; engine and zero_epilogue"}},
          {{"id", "novelty"}, {"description", "zero_epilogue: towards what was met least"}},
          {{"id", "replay:FILE"}, {"description", "the one execution of a *.zps schedule"}}};
}

OrderedJson all_runtimes() {
  OrderedJson list = OrderedJson::array();
  for (const RuntimeInfo& info : runtimes()) {
    const std::string missing = info.is_available ? "" : fmt::format("; not here: {}", info.reason);
    list.push_back({{"id", info.name}, {"description", std::string(info.summary) + missing}});
  }
  return list;
}

OrderedJson verbs() {
  OrderedJson list = OrderedJson::array();
  for (const VerbInfo& info : verb_table()) {
    list.push_back({{"id", info.name}, {"description", info.summary}});
  }
  return list;
}

struct Section {
  std::string_view name;
  OrderedJson (*make)();
};

constexpr std::array kSections = {
    Section{"scenarios", scenarios},   Section{"policies", policies},
    Section{"properties", properties}, Section{"schedulers", schedulers},
    Section{"runtimes", all_runtimes}, Section{"verbs", verbs},
};

// A row of text has one line of a terminal or two; JSON has the rest.
bool is_shown(std::string_view key) {
  constexpr std::array<std::string_view, 4> kHidden = {"scopes", "former_id", "source", "modes"};
  return std::ranges::find(kHidden, key) == kHidden.end();
}

std::string cell(const OrderedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string words;
  for (const OrderedJson& word : value)
    words += (words.empty() ? "" : " ") + word.get<std::string>();
  return words;
}

std::string section_text(const std::string& name, const OrderedJson& faults,
                         const Palette& palette) {
  std::vector<std::vector<std::string>> rows;
  for (const OrderedJson& fault : faults) {
    auto& row = rows.emplace_back();
    for (const auto& [key, value] : fault.items()) {
      if (is_shown(key)) row.push_back(cell(value));
    }
  }
  return palette.title(name) + "\n" + table_text(rows);
}

class ListVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_,
                    {"SECTION", "scenarios, policies, properties, schedulers, runtimes, verbs"});
  }

  Result<VerbResult> run(Session& session) override {
    OrderedJson document = {{"schema", "zeroproof.list/1"}};
    for (const std::string& word : words_) {
      if (const auto known = check(word); !known) return tl::unexpected(known.error());
    }
    for (const Section& section : kSections) {
      if (is_wanted(section.name)) document[std::string(section.name)] = section.make();
    }
    return VerbResult{
        .text = [document, palette = session.palette] { return text(document, palette); },
        .json = [document] { return document.dump(1); }};
  }

 private:
  static std::string text(const OrderedJson& document, const Palette& palette) {
    std::string page;
    for (const auto& [key, value] : document.items()) {
      if (!value.is_array()) continue;
      if (!page.empty()) page += '\n';
      page += section_text(key, value, palette);
    }
    return page;
  }

  static Result<void> check(const std::string& word) {
    std::vector<std::string_view> known;
    for (const Section& section : kSections) {
      if (section.name == word) return {};
      known.push_back(section.name);
    }
    return fail(ErrorCode::usage,
                fmt::format("list: unknown section '{}': {}", word, did_you_mean(word, known)));
  }

  bool is_wanted(std::string_view name) const {
    return words_.empty() || std::find(words_.begin(), words_.end(), name) != words_.end();
  }

  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Verb> make_list() {
  return std::make_unique<ListVerb>();
}

}  // namespace zeroproof
