#include "props/hunt/corpus.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "props/interpreter/judged_ranks.h"
#include "props/program/draw.h"
#include "props/program/json_lines.h"
#include "props/program/program_json.h"
#include "props/program/source_chooser.h"
#include "props/train/rank_trace.h"

namespace zeroproof::hunt {
namespace {

using OrderedJson = nlohmann::ordered_json;

// What has to be read of an entry beside its program.
bool is_whole(const OrderedJson& document) {
  const auto is_text = [&](const char* key) {
    return document.contains(key) && document[key].is_string();
  };
  return document.is_object() && document.value("schema", OrderedJson()) == kCorpusSchema &&
         is_text("fault") && is_text("property") && is_text("judge") &&
         document.contains("schedule") && document["schedule"].is_array() &&
         document.contains("program");
}

}  // namespace

Result<CorpusEntry> corpus_entry_of(const ProgramFound& found) {
  const ProgramCounterexample& counterexample = found.counterexample;
  program::Source source(counterexample.values);
  CorpusEntry entry{.fault = found.fault ? found.fault->id : "",
                    .property = found.property ? std::string(found.property->number) : "",
                    .judge = counterexample.judge,
                    .schedule = {},
                    .program = program::draw_program(source)};
  if (const auto contract = program::Contract::of(entry.program); !contract)
    return tl::unexpected(contract.error());
  const std::size_t drawn = std::min(source.choices().list.size(), counterexample.values.size());
  entry.schedule.assign(counterexample.values.begin() + static_cast<std::ptrdiff_t>(drawn),
                        counterexample.values.end());
  return entry;
}

std::string corpus_json(const CorpusEntry& entry) {
  const OrderedJson document = {
      {"schema", kCorpusSchema},
      {"fault", entry.fault},
      {"property", entry.property},
      {"judge", name_of(entry.judge)},
      {"schedule", entry.schedule},
      {"program", OrderedJson::parse(program::program_json(entry.program))}};
  return program::json_lines(document.dump());
}

Result<CorpusEntry> parse_corpus_entry(std::string_view json, std::string_view where) {
  const OrderedJson document = OrderedJson::parse(json, nullptr, false);
  if (!is_whole(document))
    return fail(ErrorCode::usage, fmt::format("{}: no document of {}", where, kCorpusSchema));
  CorpusEntry entry;
  entry.fault = document["fault"].get<std::string>();
  entry.property = document["property"].get<std::string>();
  const auto judge = judge_named(document["judge"].get<std::string>());
  if (!judge)
    return fail(ErrorCode::usage,
                fmt::format("{}: /judge: no judge is called {}", where, document["judge"].dump()));
  entry.judge = *judge;
  for (const OrderedJson& choice : document["schedule"]) {
    if (!choice.is_number_unsigned())
      return fail(ErrorCode::usage,
                  fmt::format("{}: /schedule: {} is no choice", where, choice.dump()));
    entry.schedule.push_back(choice.get<std::uint32_t>());
  }
  auto program =
      program::parse_program(document["program"].dump(), fmt::format("{}: /program", where));
  if (!program) return tl::unexpected(program.error());
  entry.program = std::move(*program);
  return entry;
}

Result<CorpusCase> CorpusCase::make(const CorpusEntry& entry) {
  auto program = ProgramCase::make(entry.program);
  if (!program) return tl::unexpected(program.error());
  return CorpusCase(std::move(*program), entry);
}

CorpusCase::CorpusCase(std::unique_ptr<ProgramCase> program, const CorpusEntry& entry)
    : program_(std::move(program)), judge_(entry.judge), schedule_(entry.schedule) {}

CaseResult CorpusCase::run(const program::EngineVariant& variant) const {
  program::Source source(schedule_);
  program::SourceChooser chooser(source);
  return program_->judge(judge_, variant, chooser);
}

Result<std::vector<std::string>> CorpusCase::record(const program::EngineVariant& variant,
                                                    const std::string& path) const {
  const std::vector<train::RankFacts> ranks = program::judged_ranks(runnable());
  const auto traces = train::RankTraces::create(path, ranks);
  if (!traces) return tl::unexpected(traces.error());
  program::Source source(schedule_);
  program::SourceChooser chooser(source);
  (void)program::run_program(runnable(), {.observes = judge_.kind != ProgramJudge::Kind::events,
                                          .variant = variant,
                                          .chooser = &chooser,
                                          .watch = traces->get()});
  if (auto written = (*traces)->finish(); !written) return tl::unexpected(written.error());
  std::vector<std::string> paths;
  for (const train::RankFacts& facts : ranks)
    paths.push_back(train::rank_path(path, facts.run.rank, facts.run.world));
  return paths;
}

}  // namespace zeroproof::hunt
