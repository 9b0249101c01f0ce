#include "props/program/features.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "props/program/contract.h"
#include "props/program/forward_flow.h"
#include "props/program/value_json.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof::program {
namespace {

// "+retain_graph" or "+no_grad", where the member is not as usual. Names, numbers and lists count
// by their member alone: features of each value would never repeat.
template <class Struct, class Value>
std::string member_word(const Struct& object, const Member<Struct, Value>& row) {
  const bool is_named = row.role == Role::optional && !has_default(object, row);
  if constexpr (std::is_enum_v<Value>) {
    const bool is_kind = row.role == Role::needed;
    return is_kind || is_named ? fmt::format("+{}", enum_word(object.*row.pointer)) : "";
  } else if constexpr (std::is_same_v<Value, bool>) {
    return is_named || (row.role == Role::needed && object.*row.pointer)
               ? fmt::format("+{}", row.name)
               : "";
  } else {
    return is_named ? fmt::format("+{}", row.name) : "";
  }
}

template <Described Struct>
std::string word_of(const Struct& part) {
  std::string word(Description<Struct>::name);
  visit_members<Struct>([&](const auto& row) { word += member_word(part, row); });
  return word;
}

// Where the values of a program come from: "sum", "call_module", "scale"; no word for a forward.
class Origins {
 public:
  template <class Kind>
  void note(const Kind& kind) {
    constexpr std::string_view kName = Description<Kind>::name;
    if constexpr (requires { kind.as; })
      origins_[kind.as] = std::is_same_v<Kind, Forward> ? "" : kName;
  }

  // "(sum)", "(.1)" of the second loss.
  std::string word_of(const std::string& value) const {
    const std::size_t dot = value.find('.');
    const auto at = origins_.find(value.substr(0, dot));
    const std::string origin = at == origins_.end() ? "" : at->second;
    const std::string suffix = dot == std::string::npos ? "" : value.substr(dot);
    return origin.empty() && suffix.empty() ? "" : fmt::format("({}{})", origin, suffix);
  }

 private:
  std::map<std::string, std::string> origins_;
};

// Options, modules, engines and the world, as words beside which statements stand.
class Circumstances {
 public:
  explicit Circumstances(const Program& program) {
    const nlohmann::json config = config_difference_json(program.config);
    const nlohmann::json leaves = config.empty() ? config : config.flatten();
    for (const auto& [pointer, value] : leaves.items())
      words_.insert(fmt::format("{}={}", pointer, value.dump()));
    add_numbers("world", program.world);
    words_.insert("data+" + std::string(enum_word(program.data.mode)));
    for (const EngineSpec& engine : program.engines) add_numbers("engine", engine);
    for (const Model& model : program.models) {
      words_.insert(word_of(model));
      for (const Module* const node : nodes_of(model))
        std::visit([&](const auto& kind) { words_.insert(word_of(kind)); }, node->kind);
    }
  }

  const std::set<std::string>& words() const { return words_; }

 private:
  // A world of two ranks is not one of six.
  template <Described Struct>
  void add_numbers(std::string_view name, const Struct& part) {
    visit_members<Struct>([&](const auto& row) {
      if (row.role == Role::optional && !has_default(part, row))
        words_.insert(fmt::format("{}.{}={}", name, row.name, written(part.*row.pointer).dump()));
    });
  }

  std::set<std::string> words_;
};

class Collection {
 public:
  Collection(const Program& program, const std::vector<const Production*>& productions)
      : program_(program), circumstances_(program) {
    if (auto contract = Contract::of(program_)) contract_ = std::move(*contract);
    visit(program_.body, "");
    add_productions(productions);
  }

  std::vector<std::string> sorted() const { return {features_.begin(), features_.end()}; }

 private:
  void visit(const Body& body, const std::string& around) {
    for (const Statement& statement : body)
      std::visit([&](const auto& kind) { visit_kind(statement, kind, around); }, statement.kind);
  }

  template <class Kind>
  void visit_kind(const Statement& statement, const Kind& kind, const std::string& around) {
    std::string word = word_of(kind);
    if constexpr (requires { kind.value; })
      if constexpr (std::is_same_v<decltype(kind.value), std::string>)
        word += origins_.word_of(kind.value);
    origins_.note(kind);
    add(statement, word, around);
    if constexpr (requires { kind.body; }) visit(kind.body, word);
    if constexpr (requires { kind.hooks; })
      for (const Hook& hook : kind.hooks) visit(hook.body, word_of(hook));
  }

  void add(const Statement& statement, const std::string& word, const std::string& around) {
    if (!before_.empty()) features_.insert(fmt::format("{} > {}", before_, word));
    if (!around.empty()) features_.insert(fmt::format("{} ( {}", around, word));
    for (const std::string& circumstance : circumstances_.words())
      features_.insert(fmt::format("{} x {}", circumstance, word));
    before_ = word;
    add_refusal(statement);
  }

  void add_refusal(const Statement& statement) {
    if (!contract_) return;
    const Expectation& expectation = contract_->of(statement);
    if (!expectation.is_refused()) return;
    features_.insert(fmt::format("refused: {}", expectation.refusal
                                                    ? engine_error_name(*expectation.refusal)
                                                    : std::string_view(before_)));
  }

  void add_productions(const std::vector<const Production*>& productions) {
    for (std::size_t i = 1; i < productions.size(); ++i)
      features_.insert(
          fmt::format("production: {}, {}", productions[i - 1]->name, productions[i]->name));
  }

  const Program& program_;
  Circumstances circumstances_;
  std::optional<Contract> contract_;
  Origins origins_;
  std::string before_;
  std::set<std::string> features_;
};

}  // namespace

std::vector<std::string> features_of(const Program& program,
                                     const std::vector<const Production*>& productions) {
  return Collection(program, productions).sorted();
}

}  // namespace zeroproof::program
