// The verbs of `zeroproof-mutation`.
#include <array>

#include "props/cli/verb.h"
#include "props/mutation/cli/list_verb.h"
#include "props/mutation/cli/mutation_verb.h"

namespace zeroproof {
namespace {

constexpr std::array kVerbs = {
    VerbInfo{kMutation, "hunts faults injected into the engine, each by drawn programs",
             "  zeroproof mutation\n"
             "  zeroproof mutation A01 B17 --budget 20s\n"
             "  zeroproof mutation --unmutated 100s --seed 3\n",
             make_mutation},
    VerbInfo{"list", "lists the faults", "  zeroproof-mutation list\n", make_fault_list},
    VerbInfo{"show", "shows a counterexample of a fault: as timeline, page or chart",
             "  zeroproof-mutation show tests/mutation/corpus/A21.json --html --out a21.html\n",
             make_show},
    VerbInfo{"train", "runs the engine, with --fault a mutated one, on a small model",
             "  zeroproof-mutation train --stage 2 --fault B19 --check-baseline\n", make_train},
    VerbInfo{"score", "reports which mutants of single statements the properties kill",
             "  zeroproof-mutation score --sample 500\n"},
    VerbInfo{"record", "trains, with --fault a mutated engine, and writes hooktrace files",
             "  zeroproof-mutation record --fault B19 --stage 2 --trace run.jsonl\n", make_record},
};

}  // namespace

const ProgramInfo& program_info() {
  static constexpr ProgramInfo kProgram{
      .name = "zeroproof-mutation",
      .about =
          "The engine of zeroproof with injected faults, at most one active at a time."
          "\nzeroproof runs this program for its verb mutation, and for --fault.\n"};
  return kProgram;
}

std::span<const VerbInfo> verb_table() {
  return kVerbs;
}

}  // namespace zeroproof
