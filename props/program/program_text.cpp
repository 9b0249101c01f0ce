#include "props/program/program_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "props/program/config_difference.h"
#include "props/program/value_text.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof::program {
namespace {

constexpr std::size_t kIndent = 4;
constexpr std::size_t kCommentColumn = 40;
constexpr std::size_t kWidth = 100;

std::string with_arguments(std::string_view function, const std::string& first,
                           const std::string& rest) {
  const std::string_view comma = first.empty() || rest.empty() ? "" : ", ";
  return fmt::format("{}({}{}{})", function, first, comma, rest);
}

std::string member_of(const std::string& object, std::string_view name) {
  return object.empty() ? std::string(name) : fmt::format("{}.{}", object, name);
}

// The first line of a statement: as = engine.name(arguments), unless Python has a better word.
template <class Kind>
std::string head_of(const Kind& kind) {
  std::string name(Description<Kind>::name);
  if constexpr (requires { kind.engine; }) name = member_of(kind.engine, name);
  std::string call = with_arguments(name, "", Arguments::of(kind));
  if constexpr (requires { kind.as; }) return fmt::format("{} = {}", kind.as, call);
  if constexpr (requires { kind.body; }) return fmt::format("with {}:", call);
  return call;
}
std::string head_of(const Forward& forward) {
  const std::string call = with_arguments(forward.engine, "x", Arguments::of(forward));
  return fmt::format("{} = {}", forward.as, call);
}
std::string head_of(const CallModule& call) {
  const std::string module = member_of(call.engine, call.module);
  return fmt::format("{} = {}", call.as,
                     with_arguments(module, "x", Arguments::of(call, "module")));
}
std::string head_of(const Sum& sum) {
  return fmt::format("{} = {}", sum.as, fmt::join(sum.values, " + "));
}
std::string head_of(const Backward& backward) {
  const std::string value = shown(backward.value);
  const std::string options = Arguments::of(backward, "value");
  return backward.engine.empty()
             ? with_arguments(member_of(value, "backward"), "", options)
             : with_arguments(member_of(backward.engine, "backward"), value, options);
}
std::string head_of(const Freeze& freeze) {
  return fmt::format("{}.{}.requires_grad_({})", freeze.engine, freeze.module,
                     shown(freeze.is_trained));
}
std::string head_of(const Drop& drop) {
  return drop.rank ? fmt::format("if rank == {}: del {}", *drop.rank, drop.value)
                   : "del " + drop.value;
}
std::string head_of(const Block& block) {
  const std::string manager = member_of(block.engine, enum_word(block.kind));
  return fmt::format("with {}:", with_arguments(manager, "", Arguments::of(block, "kind")));
}
std::string head_of(const Raise& /*raise*/) {
  return "raise UserError";
}
std::string head_of(const Catch& /*attempt*/) {
  return "try:";
}

class ProgramText {
 public:
  ProgramText(const Program& program, const Contract* contract)
      : program_(program), contract_(contract) {}

  std::string text() {
    add_settings();
    for (const Model& model : program_.models) add(model);
    for (const EngineSpec& engine : program_.engines) {
      add_line(fmt::format("{} = initialize({})", engine.name, Arguments::of(engine)));
    }
    for (const Statement& statement : program_.body) add(statement);
    return std::move(text_);
  }

 private:
  // The world, the configuration and the data.
  void add_settings() {
    World others = program_.world;
    others.ranks = World().ranks;
    const int ranks = program_.world.ranks;
    const std::string world = settings(others);
    add_line(fmt::format("{} rank{}, {}{}{}", ranks, ranks == 1 ? "" : "s", world,
                         world.empty() ? "" : ", ", config_words(program_.config)));
    if (program_.data != Data()) add_line("data: " + settings(program_.data));
  }

  // "tensor 2, sequence 2", as config_words has them.
  template <class Struct>
  static std::string settings(const Struct& value) {
    std::string words = Arguments::of(value);
    std::ranges::replace(words, '=', ' ');
    return words;
  }

  void add(const Model& model) {
    const std::string body = shown(model.body);
    const std::string options = Arguments::of(model, "body");
    add_line(fmt::format("{} = {}", model.name,
                         options.empty() ? body : with_arguments("Model", body, options)));
  }

  void add(const Statement& statement) {
    const auto add_kind = [&](const auto& kind) {
      add_line(head_of(kind), refusal_of(statement));
      if constexpr (requires { kind.body; }) add(kind.body);
      if constexpr (requires { kind.hooks; })
        for (const Hook& hook : kind.hooks) add(hook);
    };
    std::visit(add_kind, statement.kind);
    if (std::holds_alternative<Catch>(statement.kind)) add_line("except UserError: pass");
  }

  void add(const Body& body) {
    ++depth_;
    if (body.empty()) add_line("pass");
    for (const Statement& statement : body) add(statement);
    --depth_;
  }

  void add(const Hook& hook) {
    const std::string of = hook.module.empty() ? "" : "_of_" + hook.module;
    add_line(fmt::format("def at_{}{}():", enum_word(hook.at), of));
    add(hook.body);
  }

  std::string refusal_of(const Statement& statement) const {
    if (contract_ == nullptr) return "";
    const Expectation& expectation = contract_->of(statement);
    if (expectation.refusal)
      return fmt::format("refused: {}", engine_error_name(*expectation.refusal));
    return expectation.is_refused() ? "refused" : "";
  }

  // A long line goes on below, after a comma.
  void add_line(std::string line, const std::string& comment = "") {
    std::size_t indent = depth_ * kIndent;
    while (indent + line.size() > kWidth) {
      const std::size_t comma = line.rfind(", ", kWidth - indent - 2);
      if (comma == std::string::npos) break;
      text_ += fmt::format("{:{}}{}\n", "", indent, line.substr(0, comma + 1));
      line.erase(0, comma + 2);
      indent = (depth_ + 1) * kIndent;
    }
    const std::string whole = fmt::format("{:{}}{}", "", indent, line);
    text_ += comment.empty() ? whole : fmt::format("{:<{}} # {}", whole, kCommentColumn, comment);
    text_ += '\n';
  }

  const Program& program_;
  const Contract* contract_;
  std::size_t depth_ = 0;
  std::string text_;
};

}  // namespace

std::string program_text(const Program& program, const Contract* contract) {
  return ProgramText(program, contract).text();
}

}  // namespace zeroproof::program
