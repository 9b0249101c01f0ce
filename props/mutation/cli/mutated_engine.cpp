// The twin of props/cli/no_mutated_engine.cpp for the program with faults.
#include "props/cli/mutated_engine.h"

#include <fmt/format.h>

#include "props/cli/sibling.h"
#include "props/cli/verb.h"
#include "props/mutation/fault.h"
#include "props/mutation/mutants.h"

namespace zeroproof {

const char* sibling_for(const std::vector<std::string>& words) {
  const bool is_score = words.front() == "score" ||
                        (words.front() == "help" && words.size() > 1 && words[1] == "score");
  return is_score ? kScoreProgram : nullptr;
}

Result<program::EngineVariant> variant_of_fault(const std::string& id) {
  if (id.empty()) return program::EngineVariant{};
  const mutation::Fault* const fault = mutation::find_fault(id);
  if (fault == nullptr)
    return fail(ErrorCode::usage, fmt::format("the engine has no fault {}", id));
  return mutation::mutant_of(*fault).variant;
}

Result<void> set_fault(train::TrainCell& cell, const std::string& id) {
  if (id.empty()) return {};
  const mutation::Fault* const fault = mutation::find_fault(id);
  if (fault == nullptr || !fault->is_modelled())
    return fail(ErrorCode::usage, fmt::format("train: --fault {}: the engine has no such fault; "
                                              "'zeroproof-mutation list' names them",
                                              id));
  mutation::mutate(fault, cell);
  return {};
}

}  // namespace zeroproof
