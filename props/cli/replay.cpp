// `zeroproof replay`: recorded traces against queue rules, manager and properties.
#include "props/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/files/atomic_file.h"
#include "model/nearest_name.h"
#include "props/cli/explore_program.h"
#include "props/cli/explore_zero_epilogue.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/policy_command_flag.h"
#include "props/cli/policy_flag.h"
#include "props/cli/replay_engine.h"
#include "props/cli/replay_program.h"
#include "props/cli/shell_quote.h"
#include "props/cli/verb.h"
#include "props/foreign/dump_compare.h"
#include "props/foreign/dump_paths.h"
#include "props/foreign/dump_reader.h"
#include "props/replay/diagnose.h"
#include "props/replay/schedule_replay.h"
#include "props/replay/trace_paths.h"
#include "props/replay/what_if.h"
#include "props/report/diagnosis_report.h"
#include "props/report/explore_junit.h"
#include "props/report/explore_text.h"
#include "props/report/json.h"
#include "props/report/page/replay_page.h"
#include "props/report/replay_findings.h"
#include "props/report/replay_junit.h"
#include "props/report/replay_text.h"
#include "props/report/text.h"
#include "props/zero_epilogue.h"

namespace zeroproof {
namespace {

Result<ReplayLevels> parse_levels(const std::vector<std::string>& words) {
  if (words.empty()) return ReplayLevels{};
  constexpr std::array<std::string_view, 3> kNames = {"queue", "state", "properties"};
  for (const std::string& word : words) {
    if (std::find(kNames.begin(), kNames.end(), word) == kNames.end()) {
      return fail(ErrorCode::usage, fmt::format("replay: --levels: unknown level '{}': {}", word,
                                                did_you_mean(word, kNames)));
    }
  }
  const auto has = [&](std::string_view name) {
    return std::find(words.begin(), words.end(), name) != words.end();
  };
  return ReplayLevels{has("queue"), has("state"), has("properties")};
}

constexpr std::size_t kPageLines = 120;      // of the text, whatever was read
constexpr std::size_t kDiagnosisLines = 40;  // of these, that other sections leave free
constexpr std::size_t kWhatIfLines = 24;

class ReplayVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(
        words_,
        {"TRACE",
         "traces, flight-recorder dumps, Kineto traces, folders of them, or one schedule: a "
         "file *.zps or *.zpe, or its text zps1:... or zpe1..."});
    add_policy_flag(flags, policy_,
                    "drive the state level with this policy, and say what it would have done");
    command_.declare(flags);
    flags.add_value("mode", mode_,
                    {"MODE",
                     "graph_task_callback or count_fallback",
                     {"graph_task_callback", "count_fallback"}});
    flags.add_list("levels", levels_, {"LIST", "some of queue,state,properties (default: all)"});
    engine_.declare(flags);
    program_.declare(flags);
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.empty()) {
      return fail(ErrorCode::usage, "replay: name at least one trace, folder or schedule");
    }
    if (program_.is_given()) return program_.run(words_);
    if (words_.size() == 1 && is_zero_epilogue_word(words_.front()))
      return ZeroEpilogueExplore::replay(words_.front(), session);
    if (words_.size() == 1 && is_program_word(words_.front()))
      return replay_program(words_.front(), session);
    if (EngineReplayVerb::is_meant(words_)) return engine_.run(words_, session);
    const auto findings = std::make_shared<Findings>();
    if (auto ran = replay_schedules(*findings); !ran) return tl::unexpected(ran.error());
    if (auto ran = replay_traces(session, *findings); !ran) return tl::unexpected(ran.error());
    if (auto told = answer(*findings); !told) return tl::unexpected(told.error());
    if (auto written = write_page(*findings, session); !written)
      return tl::unexpected(written.error());
    auto result = result_of(session, findings);
    if (result) result->findings = [findings] { return located(*findings); };
    return result;
  }

 private:
  struct Findings {
    ReplayReport traces;
    std::vector<ScheduleReplay> schedules;
    ReplayAnswers answers;
  };

  // Beside replay.json, which the command writes.
  static Result<void> write_page(const Findings& findings, const Session& session) {
    if (session.common.out_dir.empty()) return {};
    if (auto made = make_folder(session.common.out_dir); !made) return made;
    const std::string asked = fmt::format("{} {}", session.program, session.arguments);
    return write_file_atomically(session.common.out_dir + "/report.html",
                                 replay_page(findings.traces, findings.answers, asked));
  }

  Result<ReplayOptions> options() const {
    ReplayOptions options{.has_story = true, .policy = policy_};
    const auto levels = parse_levels(levels_);
    if (!levels) return tl::unexpected(levels.error());
    options.levels = *levels;
    if (!mode_.empty()) options.mode = *policy_mode_of(mode_);
    return options;
  }

  // Takes the schedules out of the words.
  Result<void> replay_schedules(Findings& findings) {
    if (auto started = command_.start(); !started) return started;
    ScheduleReplayOptions options{.policy = command_.is_given() ? command_.policy() : policy_,
                                  .make_policy = command_.make_policy()};
    if (!mode_.empty()) options.mode = *policy_mode_of(mode_);
    const auto first = std::stable_partition(
        words_.begin(), words_.end(), [](const auto& word) { return !is_schedule_word(word); });
    for (auto word = first; word != words_.end(); ++word) {
      auto replayed = replay_schedule(*word, options);
      if (!replayed) return tl::unexpected(replayed.error());
      findings.schedules.push_back(std::move(*replayed));
    }
    words_.erase(first, words_.end());
    if (command_.is_given() && (!words_.empty() || !policy_.empty()))
      return fail(ErrorCode::usage,
                  "replay: --policy-command is the policy of schedules: give schedules alone, and "
                  "no --policy");
    return {};
  }

  Result<void> replay_traces(const Session& session, Findings& findings) {
    const auto chosen = options();
    if (!chosen) return tl::unexpected(chosen.error());
    std::vector<std::string> paths;
    for (const std::string& word : words_) {
      const std::vector<std::string> dumps = dump_paths(word);
      dumps_.insert(dumps_.end(), dumps.begin(), dumps.end());
      if (dumps.size() == 1 && dumps.front() == word) continue;
      const auto found = trace_paths(word);
      if (!found && dumps.empty()) return tl::unexpected(found.error());
      if (found) paths.insert(paths.end(), found->begin(), found->end());
    }
    ProgressLine progress(session.common.progress);
    ProgressView view{.task = "replay", .runs_max = paths.size()};
    Replay replay(*chosen, [&] {
      progress.update([&] { return view; });
      return was_interrupted();
    });
    for (const std::string& path : paths) {
      if (was_interrupted()) break;
      if (auto added = replay.add(path); !added) return added;
      ++view.runs;
      progress.update([&] { return view; });
    }
    findings.traces = replay.finish();
    if (paths.size() > 1) progress.finish(view);
    findings.traces.is_interrupted = was_interrupted();
    return {};
  }

  // The findings in words, the dumps of other formats, and what --policy would have done.
  Result<void> answer(Findings& findings) const {
    ReplayAnswers& answers = findings.answers;
    answers.dumps = read_dumps();
    answers.diagnosis = diagnose(findings.traces);
    mark_defects(findings.traces, answers.diagnosis);
    const auto& told = answers.dumps.diagnosis;
    answers.diagnosis.insert(answers.diagnosis.end(), told.begin(), told.end());
    return policy_.empty() ? Result<void>{} : ask_what_if(findings);
  }

  // Interrupted: what was read is listed and not compared, as a part of the ranks would mislead.
  DumpReport read_dumps() const {
    const auto words = std::make_shared<DumpWords>();
    std::vector<RankDump> dumps;
    std::vector<Error> faults;
    for (const std::string& path : dumps_) {
      if (was_interrupted()) break;
      auto dump = read_rank_dump(path, words);
      if (dump)
        dumps.push_back(std::move(*dump));
      else if (!was_interrupted())
        faults.push_back(dump.error());
    }
    if (was_interrupted()) return {};
    DumpReport report = compare_dumps(std::move(dumps));
    report.faults.insert(report.faults.begin(), faults.begin(), faults.end());
    return report;
  }

  Result<void> ask_what_if(Findings& findings) const {
    const PolicyMode mode =
        mode_.empty() ? PolicyMode::graph_task_callback : *policy_mode_of(mode_);
    for (const TraceReplay& trace : findings.traces.traces) {
      if (trace.fault && trace.events == 0) continue;
      auto report = what_if(trace.path, policy_, mode);
      if (!report) return tl::unexpected(report.error());
      if (report->is_applicable()) findings.answers.what_if.push_back(std::move(*report));
    }
    return {};
  }

  static bool has_defect(const ReplayAnswers& answers) {
    return std::any_of(answers.diagnosis.begin(), answers.diagnosis.end(),
                       [](const Diagnosis& one) { return one.gravity == Gravity::defect; }) ||
           std::any_of(answers.what_if.begin(), answers.what_if.end(),
                       [](const WhatIfReport& one) { return !one.missed.empty(); });
  }

  static ExitCode exit_code_of(const Findings& findings) {
    const ReplaySummary summary = findings.traces.summary();
    bool is_falsified = summary.mismatched > 0 || has_defect(findings.answers);
    for (const ScheduleReplay& schedule : findings.schedules) {
      if (!schedule.is_reproduced()) return ExitCode::nondeterminism;
      is_falsified = is_falsified || !schedule.falsified.empty();
    }
    if (summary.unreadable > 0 || !findings.answers.dumps.faults.empty())
      return ExitCode::unreadable;
    return is_falsified ? ExitCode::falsified : ExitCode::held;
  }

  static std::string page(const Findings& findings, const Session& session) {
    std::string text = session.seed_line();
    for (const ScheduleReplay& schedule : findings.schedules) {
      text += schedule_text_page(schedule, {session.terminal.columns, session.palette});
    }
    const ReplayAnswers& answers = findings.answers;
    const bool has_dumps = !answers.dumps.dumps.empty() || !answers.dumps.faults.empty();
    if (!findings.traces.traces.empty() || (findings.schedules.empty() && !has_dumps)) {
      text += replay_text(findings.traces, session.terminal.columns, session.palette);
    }
    text += dumps_text(answers.dumps, session.palette);
    text += limited_lines(what_if_text(answers.what_if, session.palette), kWhatIfLines);
    text = limited_lines(text, kPageLines - kDiagnosisLines);
    const std::size_t left = kPageLines - 1 - line_count(text);
    text += diagnosis_text(answers.diagnosis, session.terminal.columns, left, session.palette);
    return text + session.reproduce_line(exit_code_of(findings));
  }

  static std::vector<JUnitCase> cases(const Findings& findings) {
    std::vector<JUnitCase> cases = replay_cases(findings.traces);
    for (const Error& fault : findings.answers.dumps.faults)
      cases.push_back({"dumps", "readable", JUnitOutcome::error, fault.text});
    for (const Diagnosis& one : findings.answers.diagnosis)
      if (one.gravity == Gravity::defect)
        cases.push_back({"diagnosis", one.kind, JUnitOutcome::failed, one.what});
    for (const ScheduleReplay& schedule : findings.schedules) {
      for (const Verdict& verdict : schedule.run.verdicts) {
        cases.push_back(property_case(schedule.source, verdict));
      }
    }
    return cases;
  }

  static LocatedFindings located(const Findings& findings) {
    LocatedFindings all = located_findings(findings.traces);
    for (LocatedFinding& finding : all) finding.reproduce = "replay " + shell_quote(finding.file);
    find_lines(all);
    for (LocatedFinding& one : located_findings(findings.schedules)) all.push_back(std::move(one));
    return all;
  }

  static std::string next_of(const ReplayReport& report) {
    if (report.traces.empty()) return {};
    return fmt::format("show {} --html --out trace.html  # its timeline",
                       shell_quote(report.traces.front().path));
  }

  static Result<VerbResult> result_of(const Session& session,
                                      const std::shared_ptr<Findings>& findings) {
    return VerbResult{.code = exit_code_of(*findings),
                      .text = [findings, &session] { return page(*findings, session); },
                      .json =
                          [findings] {
                            return replay_json(findings->traces, findings->schedules,
                                               findings->answers);
                          },
                      .junit = [findings] { return cases(*findings); },
                      .next = next_of(findings->traces)};
  }

  std::vector<std::string> words_;
  std::vector<std::string> dumps_;
  std::vector<std::string> levels_;
  std::string policy_;
  PolicyCommandFlag command_;
  std::string mode_;
  EngineReplayVerb engine_;
  RecordedProgramFlags program_;
};

}  // namespace

std::unique_ptr<Verb> make_replay() {
  return std::make_unique<ReplayVerb>();
}

}  // namespace zeroproof
