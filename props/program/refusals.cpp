#include "props/program/refusals.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/program/program_description.h"

namespace zeroproof::program {
namespace {

class Refusals {
 public:
  explicit Refusals(const Contract& contract) : contract_(contract) {}

  void visit(const Body& body, const std::string& around) {
    for (std::size_t i = 0; i < body.size(); ++i) visit(body[i], fmt::format("{}/{}", around, i));
  }
  std::map<std::string, std::string> take() { return std::move(names_); }

 private:
  void visit(const Statement& statement, const std::string& place) {
    const Expectation& expectation = contract_.of(statement);
    if (expectation.is_refused())
      names_[place] =
          expectation.refusal ? std::string(engine_error_name(*expectation.refusal)) : "";
    const auto visit_below = [&]<class Kind>(const Kind& kind) {
      const std::string below = fmt::format("{}/{}", place, Description<Kind>::name);
      if constexpr (requires { kind.body; }) visit(kind.body, below);
      if constexpr (requires { kind.hooks; })
        for (const Hook& hook : kind.hooks)
          for (const Statement& inside : hook.body) visit(inside, below + "/hook");
    };
    std::visit(visit_below, statement.kind);
  }

  const Contract& contract_;
  std::map<std::string, std::string> names_;
};

}  // namespace

std::map<std::string, std::string> refusals_of(const Program& program, const Contract& contract) {
  Refusals refusals(contract);
  refusals.visit(program.body, "body");
  return refusals.take();
}

std::string refusals_member(const Program& program) {
  const auto contract = Contract::of(program);
  if (!contract) return {};
  const auto refusals = refusals_of(program, *contract);
  return refusals.empty() ? "" : ",\"refusals\":" + nlohmann::json(refusals).dump();
}

}  // namespace zeroproof::program
