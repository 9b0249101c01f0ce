// What every verb shares: help, flags, environment, completion, streams, exit codes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "engine/runtime/registry.h"
#include "props/report/text.h"
#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

const std::string kVerbs[] = {"verify",   "replay",  "explore", "list",       "show",
                              "diff",     "convert", "doctor",  "completion", "conform",
                              "generate", "hunt",    "bisect",  "checkpoint", "watch"};

std::set<std::string> flags_in(const std::string& text) {
  static const std::regex flag("--[a-z][a-z-]*");
  return {std::sregex_token_iterator(text.begin(), text.end(), flag), std::sregex_token_iterator()};
}

TEST(Verbs, Have_a_help_page_with_examples_and_the_common_flags) {
  for (const std::string& verb : kVerbs) {
    const CommandResult result = zeroproof("help " + verb);
    EXPECT_EQ(0, result.exit_code) << verb;
    EXPECT_EQ("", result.err) << verb;
    const std::size_t examples = result.out.find("examples:\n");
    ASSERT_NE(std::string::npos, examples) << verb;
    EXPECT_NE(std::string::npos, result.out.find("zeroproof " + verb, examples)) << verb;
    for (const char* flag :
         {"--seed", "--json", "--junit", "--out", "--color", "--progress", "--help"}) {
      EXPECT_TRUE(flags_in(result.out).contains(flag)) << verb << " " << flag;
    }
    EXPECT_EQ(result.out, zeroproof(verb + " --help").out);
  }
}

TEST(Verbs, Have_help_in_80_columns) {
  std::vector<std::string> verbs(std::begin(kVerbs), std::end(kVerbs));
  verbs.insert(verbs.end(), {"", "export", "train", "record", "mutation"});
  for (const std::string& verb : verbs) {
    const std::string page = zeroproof(verb + " --help").out;
    EXPECT_GT(line_count(page), 20U) << verb;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << line;
  }
}

TEST(Verbs, Are_on_the_front_page) {
  const CommandResult result = zeroproof("--help");
  EXPECT_EQ(0, result.exit_code);
  for (const std::string& verb : kVerbs) {
    EXPECT_NE(std::string::npos, result.out.find("\n  " + verb)) << verb;
  }
}

TEST(Runtimes, Are_listed_with_what_is_missing) {
  const std::string list = zeroproof("list runtimes").out;
  for (const RuntimeInfo& info : runtimes()) {
    EXPECT_NE(std::string::npos, list.find("  " + std::string(info.name))) << list;
    EXPECT_NE(std::string::npos, list.find(std::string(info.reason))) << list;
  }
  const int code = zeroproof("train --runtime cuda --world-size 1").exit_code;
  EXPECT_EQ(code, find_runtime("cuda")->is_available ? 0 : 77);
}

TEST(Completion, Knows_every_verb_and_every_flag) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const CommandResult script = zeroproof("completion " + shell);
    ASSERT_EQ(0, script.exit_code);
    for (const std::string& verb : kVerbs) {
      EXPECT_NE(std::string::npos, script.out.find(verb)) << shell << " " << verb;
      for (const std::string& flag : flags_in(zeroproof("help " + verb).out)) {
        const std::string needle = shell == "fish" ? "-l " + flag.substr(2) : flag;
        EXPECT_NE(std::string::npos, script.out.find(needle)) << shell << " " << flag;
      }
    }
  }
}

TEST(Completion, Of_bash_offers_flags_and_their_values) {
  const ScratchFolder scratch;
  write_file(scratch / "ask.bash",
             "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _zeroproof; "
             "echo \"${COMPREPLY[@]}\"");
  zeroproof("completion bash > " + (scratch / "script"));
  const auto offered = [&](const std::string& words) {
    return run_shell("bash " + (scratch / "ask.bash") + " " + (scratch / "script") + " " + words)
        .out;
  };
  EXPECT_EQ("replay\n", offered("zeroproof rep"));
  EXPECT_EQ("--policy-command\n", offered("zeroproof replay --policy-c"));
  EXPECT_EQ("always\n", offered("zeroproof replay --color alw"));
}

struct UsageError {
  std::string arguments;
  std::string expected;  // part of stderr
};

TEST(UsageErrors, Exit_with_2_and_one_line_that_helps) {
  const UsageError errors[] = {
      {"repaly", "did you mean 'replay'?"},
      {"--json list", "comes before the verb"},
      {"help repaly", "did you mean 'replay'?"},
      {"replay --polcy deepspeed-0.18.7 x.jsonl", "did you mean '--policy'?"},
      {"replay --policy pr7887 x.jsonl", "unknown policy 'pr7887': did you mean 'pr7886'?"},
      {"explore S2 --policy deepspeed-0.19.9", "0.19.6 to 0.19.8"},
      {"replay --levels queues x.jsonl", "did you mean 'queue'?"},
      {"replay", "name at least one trace"},
      {"replay --seed twelve x.jsonl", "'twelve' is not a count"},
      {"list --color alwayx", "did you mean 'always'?"},
      {"list scenarioz", "did you mean 'scenarios'?"},
      {"show", "name a trace, a folder or a schedule"},
      {"show a b --json", "--json shows one trace"},
      {"show a --html --svg", "--html or --svg, not both"},
      {"show zps1:S2/exact:0: --from 3", "is shown whole"},
      {"list --annotations gitlab", "unknown value 'gitlab'"},
      {"show --kind gt.bgin a.jsonl", "did you mean 'gt.begin'?"},
      {"diff a", "name two traces"},
      {"convert a", "and a file to write"},
      {"completion tcsh", "unknown shell 'tcsh'"},
  };
  for (const UsageError& error : errors) {
    const CommandResult result = zeroproof(error.arguments);
    EXPECT_EQ(2, result.exit_code) << error.arguments;
    EXPECT_EQ("", result.out) << error.arguments;
    EXPECT_NE(std::string::npos, result.err.find(error.expected)) << result.err;
    EXPECT_EQ(result.err.size() - 1, result.err.find('\n')) << result.err;
  }
}

TEST(Environment, Sets_flags_and_the_command_line_wins) {
  EXPECT_TRUE(nlohmann::json::accept(run_shell("ZP_JSON=1 " ZP_BINARY " list policies").out));
  const CommandResult bad = run_shell("ZP_COLOR=green " ZP_BINARY " list");
  EXPECT_EQ(2, bad.exit_code);
  EXPECT_NE(std::string::npos, bad.err.find("ZP_COLOR=green")) << bad.err;
  EXPECT_EQ(0, run_shell("ZP_COLOR=always " ZP_BINARY " list --color never").exit_code);
  EXPECT_NE(std::string::npos, run_shell("ZP_COLOR=always " ZP_BINARY " list").out.find("\x1b["));
  EXPECT_EQ(std::string::npos,
            run_shell("ZP_COLOR=always " ZP_BINARY " list --color never").out.find("\x1b["));
}

TEST(Json, Is_one_document_that_repeats_byte_for_byte) {
  for (const std::string arguments : {"list --json", "list properties --json", "doctor --json"}) {
    const CommandResult first = zeroproof(arguments);
    EXPECT_EQ(0, first.exit_code);
    EXPECT_TRUE(nlohmann::json::accept(first.out)) << arguments;
    EXPECT_EQ(first.out, zeroproof(arguments).out) << arguments;
  }
}

TEST(Streams, A_full_disk_is_an_error) {
  const CommandResult result = zeroproof("list > /dev/full");
  EXPECT_EQ(2, result.exit_code);
  EXPECT_NE(std::string::npos, result.err.find("No space left")) << result.err;
}

TEST(Streams, A_reader_that_went_away_is_an_error_not_a_signal) {
  const ScratchFolder scratch;
  const CommandResult result =
      run_shell("{ sleep 0.2; " ZP_BINARY " list; echo $? > " + (scratch / "code") + "; } | true");
  EXPECT_EQ("2\n", read_file(scratch / "code"));
  EXPECT_NE(std::string::npos, result.err.find("reader went away")) << result.err;
}

TEST(Files, Are_written_whole_or_not_at_all) {
  const ScratchFolder scratch;
  EXPECT_EQ(0, zeroproof("list --out " + (scratch / "a/b")).exit_code);
  EXPECT_TRUE(nlohmann::json::accept(read_file(scratch / "a/b/list.json")));
  write_file(scratch / "file", "x");
  const CommandResult blocked = zeroproof("list --out " + (scratch / "file"));
  EXPECT_EQ(2, blocked.exit_code);
  EXPECT_NE(std::string::npos, blocked.err.find("cannot make this folder")) << blocked.err;
  EXPECT_EQ("x", read_file(scratch / "file"));
}

}  // namespace
}  // namespace zeroproof::cli_test
