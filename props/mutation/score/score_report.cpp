#include "props/mutation/score/score_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "props/report/table.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;
using mutation::MutantResult;
using mutation::MutantVerdict;
using mutation::Score;

struct Counts {
  std::size_t all = 0, killed = 0, survived = 0, unreached = 0;

  void add(const MutantResult& one) {
    ++all;
    killed += one.verdict == MutantVerdict::killed ? 1 : 0;
    survived += one.verdict == MutantVerdict::survived ? 1 : 0;
    unreached += one.verdict == MutantVerdict::unreached ? 1 : 0;
  }
  std::vector<std::string> row(std::string name) const {
    return {std::move(name),           std::to_string(all),
            std::to_string(killed),    std::to_string(survived),
            std::to_string(unreached), fmt::format("{:.1f} %", percent())};
  }
  double percent() const {
    return all == 0 ? 0.0 : 100.0 * static_cast<double>(killed) / static_cast<double>(all);
  }
};

std::string_view name_of(MutantVerdict verdict) {
  constexpr std::string_view kNames[] = {"killed", "survived", "unreached"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string rules_text(const Score& score) {
  Counts total;
  std::map<std::string, Counts> rules;
  for (const MutantResult& one : score.results) {
    total.add(one);
    rules[std::string(one.mutant->rule)].add(one);
  }
  std::vector<std::vector<std::string>> rows = {
      {"rule", "mutants", "killed", "survived", "unreached", "score"}};
  for (const auto& [rule, counts] : rules) rows.push_back(counts.row(rule));
  rows.push_back(total.row("all"));
  return table_text(rows);
}

std::string killers_text(const Score& score) {
  std::map<std::string, std::size_t> killers;
  for (const MutantResult& one : score.results)
    if (one.verdict == MutantVerdict::killed) ++killers[one.by];
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [by, count] : killers) order.emplace_back(count, by);
  std::ranges::stable_sort(order, std::greater{}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> words;
  for (const auto& [count, by] : order) words.push_back(fmt::format("{} {}", by, count));
  return fmt::format("killed by: {}\n", fmt::join(words, ", "));
}

}  // namespace

std::string score_text(const mutation::Corpus& corpus, const Score& score, const Palette& palette) {
  std::string text = rules_text(score) + killers_text(score);
  text += fmt::format(
      "corpus: {} runs; {} do not hold on the unmutated engine: {}\n", corpus.runs.size(),
      corpus.dropped.size(),
      corpus.dropped.empty() ? "none" : fmt::format("{}", fmt::join(corpus.dropped, " ")));
  if (score.is_interrupted) text += palette.bad("INTERRUPTED") + "\n";
  for (const MutantResult& one : score.results)
    if (one.verdict != MutantVerdict::killed)
      text += fmt::format("{:<9} {:>4} {:<8} {}:{} {}: {}\n", name_of(one.verdict),
                          one.mutant->number, one.mutant->rule, one.mutant->file, one.mutant->line,
                          one.mutant->function, one.mutant->text);
  return text;
}

std::string score_json(const mutation::Corpus& corpus, const Score& score) {
  OrderedJson mutants = OrderedJson::array();
  for (const MutantResult& one : score.results)
    mutants.push_back({{"number", one.mutant->number},
                       {"rule", one.mutant->rule},
                       {"file", one.mutant->file},
                       {"line", one.mutant->line},
                       {"function", one.mutant->function},
                       {"text", one.mutant->text},
                       {"verdict", name_of(one.verdict)},
                       {"by", one.by},
                       {"runs", one.runs}});
  return OrderedJson{{"schema", "zeroproof.score/1"},
                     {"corpus", corpus.runs.size()},
                     {"dropped", corpus.dropped},
                     {"killed", score.count(MutantVerdict::killed)},
                     {"survived", score.count(MutantVerdict::survived)},
                     {"unreached", score.count(MutantVerdict::unreached)},
                     {"interrupted", score.is_interrupted},
                     {"mutants", mutants}}
      .dump();
}

}  // namespace zeroproof
