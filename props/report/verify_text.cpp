#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "props/exploration_status.h"
#include "props/report/text.h"
#include "props/report/verify_report.h"

namespace zeroproof {
namespace {

std::string part_word(bool has_held, const Palette& palette) {
  return has_held ? palette.good("held     ") : palette.bad("FALSIFIED");
}

std::string replay_part(const VerifyReport& report, const Palette& palette) {
  std::int64_t tasks = 0;
  std::uint64_t calls = 0;
  for (const TraceReplay& trace : report.replay.traces) {
    if (trace.queue) tasks += trace.queue->matched;
    if (trace.state) calls += trace.state->matched;
  }
  std::string text = fmt::format(
      "{}  replay    {} bundled traces: {} graph tasks and {} manager calls derived; {} traces "
      "have known findings\n",
      part_word(report.has_replay_held(), palette), report.replay.traces.size(), tasks, calls,
      report.expected_findings);
  for (const std::string& line : report.unexpected) {
    text += fmt::format("    {} {}\n", palette.bad("UNEXPECTED"), visible(line));
  }
  return text;
}

std::string conform_part(const VerifyReport& report, const Palette& palette) {
  if (report.conform.outcomes.empty()) return {};
  std::set<std::string> programs;
  std::string failures;
  for (const ConformOutcome& one : report.conform.outcomes) {
    programs.insert(one.program);
    if (one.status == ConformStatus::agreed) continue;
    failures += fmt::format("    {} {}: {}\n", palette.bad(conform_status_name(one.status)),
                            visible(one.path), visible(one.detail));
  }
  return fmt::format(
             "{}  conform   {} of {} runs of {} PyTorch programs agree, hooks and numbers\n",
             part_word(report.has_conformed(), palette),
             report.conform.count(ConformStatus::agreed), report.conform.outcomes.size(),
             programs.size()) +
         failures;
}

std::string deepspeed_part(const VerifyReport& report, const Palette& palette) {
  if (report.deepspeed.outcomes.empty()) return {};
  std::string failures;
  for (const ConformOutcome& one : report.deepspeed.outcomes)
    if (one.status != ConformStatus::agreed && one.status != ConformStatus::explained)
      failures += fmt::format("    {} {}: {}\n", palette.bad(conform_status_name(one.status)),
                              visible(one.program), visible(one.detail));
  return fmt::format(
             "{}  deepspeed {} of {} recorded training runs: the engine's order, collectives and "
             "numbers agree; {} differ for a stated reason\n",
             part_word(report.has_deepspeed_agreed(), palette),
             report.deepspeed.count(ConformStatus::agreed), report.deepspeed.outcomes.size(),
             report.deepspeed.count(ConformStatus::explained)) +
         failures;
}

std::string training_part(const VerifyReport& report, const Palette& palette) {
  using train::CellStatus;
  std::string failures;
  for (const train::TrainReport& one : report.training.cells)
    if (one.is_bad())
      failures += fmt::format(
          "    {} zeroproof train {} --check-properties: {}\n", palette.bad("FALSIFIED"),
          train::flags_of(one.cell),
          visible(one.error.empty() ? one.properties->falsified.front().text : one.error));
  return fmt::format(
             "{}  train     {} of {} cells of the equality matrix (stages 0-3, 1-8 ranks, four "
             "precisions) equal the unsharded baseline; {} refused as documented; {} properties "
             "held\n",
             part_word(report.has_trained(), palette), report.training.count(CellStatus::equal),
             report.training.cells.size(), report.training.count(CellStatus::refused),
             report.training.properties_held()) +
         failures;
}

std::string engine_part(const VerifyReport& report, const Palette& palette) {
  std::uint64_t executions = 0;
  std::string failures;
  for (const train::EngineExplorationReport& one : report.engine) {
    executions += one.executions;
    if (has_held(one)) continue;
    const train::TrainCell& cell = one.options.engine_case.cell;
    failures += fmt::format(
        "    {} zeroproof explore {} --stage {} --judge streams: {}\n", palette.bad("FALSIFIED"),
        cell.scenario, cell.stage,
        visible(one.findings.empty() ? one.divergence : one.findings.front().finding.text));
  }
  return fmt::format(
             "{}  engine    {} of {} explorations of the real engine held: every scenario, stages "
             "0 to 3, in {} orders of ranks and streams\n",
             part_word(report.has_engine_held(), palette),
             std::ranges::count_if(report.engine, [](const auto& one) { return has_held(one); }),
             report.engine.size(), executions) +
         failures;
}

std::string exact_part(const VerifyReport& report, const Palette& palette) {
  OrderCount orders;
  std::size_t held = 0;
  std::string failures;
  for (const ExplorationReport& one : report.exact) {
    if (one.orders_explored) orders += *one.orders_explored;
    const ExplorationStatus status = status_of(one);
    if (status == ExplorationStatus::held) {
      ++held;
      continue;
    }
    failures += fmt::format("    {} {} {} N={}: {}\n", palette.bad(exploration_status_name(status)),
                            one.options.scenario, order_model_name(one.options.order_model),
                            one.options.params, falsified_numbers(one));
  }
  return fmt::format(
             "{}  exact     {} of {} explorations held: {} scenarios, both order models, N = {}; "
             "{} "
             "orders, each counted a second way\n",
             part_word(report.has_exact_held(), palette), held, report.exact.size(),
             builtin_scenarios().size(), report.options.is_quick ? "4" : "4 and 8", orders.text()) +
         failures;
}

std::string upstream_part(const VerifyReport& report, const PageStyle& style) {
  std::size_t findings = 0;
  for (const ExplorationTable& table : report.upstream) {
    for (const ExplorationReport& one : table) findings += one.findings.empty() ? 0 : 1;
  }
  std::string text = fmt::format(
      "{}  upstream  {} explorations of upstream's policies rediscovered a hazard\n",
      report.has_rediscovered() ? style.palette.good("caught   ") : style.palette.bad("MISSED   "),
      findings);
  for (const std::string& policy : report.not_caught) {
    text += fmt::format("    {} no property was falsified under {}\n", style.palette.bad("MISSED"),
                        policy);
  }
  return text;
}

std::string mutation_part(const VerifyReport& report, const Palette& palette) {
  if (!report.mutation) return {};
  const MutationRow& row = *report.mutation;
  std::string text = fmt::format(
      "{}  mutation  {} of {} faults found without a hint; canary {}; unmutated engine {} in {} "
      "executions\n",
      row.is_good() ? palette.good("caught   ") : palette.bad("MISSED   "), row.found, row.faults,
      row.is_canary_found ? "found" : "missed",
      row.unmutated_findings.empty() ? "clean" : "NOT clean", row.unmutated_executions);
  for (const MutationRow::Missed& one : row.missed)
    text += fmt::format("    {} {}: {}\n", palette.bad("MISSED"), one.id, visible(one.sentence));
  for (const std::string& finding : row.unmutated_findings)
    text += fmt::format("    {} {}\n", palette.bad("FALSIFIED"), visible(finding));
  return text;
}

std::string verdict_line(const VerifyReport& report, const Palette& palette) {
  if (report.is_interrupted) return palette.bad("INTERRUPTED: what was done is above") + "\n";
  if (!report.has_held()) return palette.bad("FALSIFIED") + "\n";
  return palette.good("HELD") + "\n";
}

std::string parts_text(const VerifyReport& report, const PageStyle& style) {
  return replay_part(report, style.palette) + conform_part(report, style.palette) +
         deepspeed_part(report, style.palette) + training_part(report, style.palette) +
         engine_part(report, style.palette) + exact_part(report, style.palette) +
         upstream_part(report, style) + mutation_part(report, style.palette);
}

}  // namespace

std::string verify_text(const VerifyReport& report, const PageStyle& style) {
  std::string text = parts_text(report, style);
  if (!report.upstream.empty() && !report.upstream.front().empty()) {
    text += "\n" + explore_table(report.upstream.front(), style);
  }
  return text + "\n" + verdict_line(report, style.palette);
}

std::string verify_parts_text(const VerifyReport& report) {
  return parts_text(report, {});
}

std::string verify_markdown(const VerifyReport& report) {
  std::string page =
      fmt::format("# zeroproof verify\n\nseed {}\n\n```\n{}\n{}```\n", report.options.seed,
                  parts_text(report, {}), verdict_line(report, {}));
  for (const ExplorationTable& table : report.upstream) {
    if (!table.empty()) page += fmt::format("\n```\n{}```\n", explore_table(table, {}));
  }
  return page;
}

}  // namespace zeroproof
