// `zeroproof completion SHELL`: scripts made from the verbs and their flags.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "model/nearest_name.h"
#include "props/cli/verb.h"

namespace zeroproof {
namespace {

struct VerbFlags {
  const VerbInfo* info = nullptr;
  std::vector<FlagInfo> flags;
};

std::vector<VerbFlags> built_verbs() {
  std::vector<VerbFlags> verbs;
  for (const VerbInfo& info : verb_table()) {
    VerbFlags& verb = verbs.emplace_back(VerbFlags{&info, {}});
    if (info.make != nullptr) verb.flags = VerbCall(info).flags().list();
  }
  return verbs;
}

std::string names_of(const std::vector<VerbFlags>& verbs) {
  std::string names = "help";
  for (const VerbFlags& verb : verbs) names += fmt::format(" {}", verb.info->name);
  return names;
}

// Single-quoted for any of the three shells.
std::string shell_word(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c != '\'' && c != '[' && c != ']' && c != ':') kept.push_back(c);
  }
  return fmt::format("'{}'", kept);
}

std::string bash_script() {
  const std::vector<VerbFlags> verbs = built_verbs();
  std::string flags;
  std::string values;
  for (const VerbFlags& verb : verbs) {
    std::string names;
    for (const FlagInfo& flag : verb.flags) {
      names += (names.empty() ? "" : " ") + flag.name;
      if (flag.allowed.empty()) continue;
      values += fmt::format("    {} {}) words='{}' ;;\n", verb.info->name, flag.name,
                            fmt::join(flag.allowed, " "));
    }
    flags += fmt::format("    {}) words='{}' ;;\n", verb.info->name, names);
  }
  // Patterns with a blank are quoted by the backslash that bash needs in a case word.
  std::string escaped;
  for (std::size_t begin = 0; begin < values.size();) {
    const std::size_t end = values.find('\n', begin) + 1;
    const std::string line = values.substr(begin, end - begin);
    const std::size_t paren = line.find(')');
    escaped += fmt::format("    '{}'{}", line.substr(4, paren - 4), line.substr(paren));
    begin = end;
  }
  return fmt::format(
      R"(# bash completion of zeroproof
_zeroproof() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} words=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{}' -- "$word"))
    return
  fi
  case "$verb ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{}  esac
  [[ -n $words || $word != -* ]] || case $verb in
{}  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _zeroproof zeroproof
)",
      names_of(verbs), escaped, flags);
}

std::string zsh_script() {
  std::string cases;
  std::string names;
  for (const VerbFlags& verb : built_verbs()) {
    names += fmt::format("    {}\n", shell_word(verb.info->name));
    cases += fmt::format("    {}) _arguments", verb.info->name);
    for (const FlagInfo& flag : verb.flags) {
      std::string spec = shell_word(flag.text);
      spec = fmt::format("'{}[{}]", flag.name, spec.substr(1, spec.size() - 2));
      if (flag.takes_value) {
        spec += flag.allowed.empty() ? ":value:_files"
                                     : fmt::format(":value:({})", fmt::join(flag.allowed, " "));
      }
      cases += fmt::format(" \\\n      {}'", spec);
    }
    cases += " \\\n      '*:word:_files' ;;\n";
  }
  return fmt::format(
      "#compdef zeroproof\n# zsh completion of zeroproof\nlocal -a verbs\nverbs=(\n{}    "
      "'help'\n)\n"
      "if ((CURRENT == 2)); then\n  compadd -a verbs\nelse\n  local verb=${{words[2]}}\n"
      "  words=(\"${{words[@]:1}}\")\n  ((CURRENT--))\n  case $verb in\n{}  esac\nfi\n",
      names, cases);
}

std::string fish_script() {
  std::string script = "# fish completion of zeroproof\n";
  for (const VerbFlags& verb : built_verbs()) {
    script += fmt::format("complete -c zeroproof -n __fish_use_subcommand -a {} -d {}\n",
                          verb.info->name, shell_word(verb.info->summary));
    for (const FlagInfo& flag : verb.flags) {
      script += fmt::format("complete -c zeroproof -n '__fish_seen_subcommand_from {}' -l {} -d {}",
                            verb.info->name, flag.name.substr(2), shell_word(flag.text));
      if (flag.takes_value) script += " -r";
      if (!flag.allowed.empty()) {
        script += fmt::format(" -f -a '{}'", fmt::join(flag.allowed, " "));
      }
      script += '\n';
    }
  }
  return script;
}

class CompletionVerb final : public Verb {
 public:
  void declare(Flags& flags) override { flags.add_words(words_, {"SHELL", "bash, zsh or fish"}); }

  Result<VerbResult> run(Session&) override {
    if (words_.size() != 1) {
      return fail(ErrorCode::usage, "completion: name one shell: bash, zsh or fish");
    }
    const std::string& shell = words_.front();
    if (shell == "bash") return VerbResult{.text = bash_script};
    if (shell == "zsh") return VerbResult{.text = zsh_script};
    if (shell == "fish") return VerbResult{.text = fish_script};
    constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};
    return fail(ErrorCode::usage, fmt::format("completion: unknown shell '{}': {}", shell,
                                              did_you_mean(shell, kShells)));
  }

 private:
  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Verb> make_completion() {
  return std::make_unique<CompletionVerb>();
}

}  // namespace zeroproof
