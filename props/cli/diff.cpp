// `zeroproof diff`: the first difference between the orders of two traces.
#include "sim/trace/diff.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/cli/verb.h"
#include "props/foreign/dump_format.h"
#include "props/report/json_values.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson token_json(const std::optional<PlacedToken>& token) {
  if (!token) return nullptr;
  return {{"token", token->token}, {"lc", token->lc}, {"line", token->line_number}};
}

std::string token_text(const std::string& path, const std::optional<PlacedToken>& token) {
  if (!token) return fmt::format("  {}: has ended\n", path);
  return fmt::format("  {}:{}: lc {}: {}\n", path, token->line_number, token->lc,
                     visible(token->token));
}

class DiffVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"TRACE", "two traces"});
    flags.add_switch(
        "full", is_full_,
        "compare calls of engine and manager, parameters, buckets and collectives too");
    flags.add_list("skip", options_.skip,
                   {"LIST", "leave out tokens that start with one of these"});
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.size() != 2) return fail(ErrorCode::usage, "diff: name two traces");
    for (const std::string& word : words_)
      if (auto dump = refuse_dump(word); !dump) return tl::unexpected(dump.error());
    options_.detail = is_full_ ? TokenDetail::engine : TokenDetail::order;
    NameTable left_names;
    NameTable right_names;
    auto left = TraceReader::open(words_[0], left_names);
    if (!left) return tl::unexpected(left.error());
    auto right = TraceReader::open(words_[1], right_names);
    if (!right) return tl::unexpected(right.error());
    auto compared = diff_traces(*left, left_names, *right, right_names, options_);
    if (!compared) return tl::unexpected(compared.error());
    for (const TraceReader* reader : {&*left, &*right}) {
      if (reader->truncation()) return fail(ErrorCode::unreadable, *reader->truncation());
    }
    const bool is_same = !compared->difference;
    return VerbResult{.code = is_same ? ExitCode::held : ExitCode::falsified,
                      .text = [this, compared = *compared,
                               palette = session.palette] { return text(compared, palette); },
                      .json = [this, compared = *compared] { return json(compared); },
                      .junit = [this, compared = *compared] { return cases(compared); }};
  }

 private:
  std::string text(const TraceComparison& compared, const Palette& palette) const {
    if (!compared.difference) {
      return palette.good(fmt::format("same order: {} tokens", compared.equal_tokens)) + "\n";
    }
    const TraceDifference& difference = *compared.difference;
    std::string page =
        palette.bad(fmt::format("orders differ after {} equal tokens", compared.equal_tokens)) +
        "\n";
    for (const std::string& token : difference.before) {
      page += fmt::format("  both: {}\n", visible(token));
    }
    return page + token_text(words_[0], difference.left) + token_text(words_[1], difference.right);
  }

  std::string json(const TraceComparison& compared) const {
    OrderedJson document = {{"schema", "zeroproof.diff/1"},
                            {"traces", words_},
                            {"detail", is_full_ ? "engine" : "order"},
                            {"same", !compared.difference},
                            {"equal_tokens", compared.equal_tokens},
                            {"difference", nullptr}};
    if (compared.difference) {
      document["difference"] = {{"position", compared.difference->position},
                                {"before", compared.difference->before},
                                {"left", token_json(compared.difference->left)},
                                {"right", token_json(compared.difference->right)}};
    }
    return document_text(document);
  }

  std::vector<JUnitCase> cases(const TraceComparison& compared) const {
    JUnitCase one{.suite = "diff", .name = words_[0] + " " + words_[1]};
    if (compared.difference) {
      one.outcome = JUnitOutcome::failed;
      one.text = text(compared, Palette());
    }
    return {one};
  }

  std::vector<std::string> words_;
  bool is_full_ = false;
  TraceDiffOptions options_;
};

}  // namespace

std::unique_ptr<Verb> make_diff() {
  return std::make_unique<DiffVerb>();
}

}  // namespace zeroproof
