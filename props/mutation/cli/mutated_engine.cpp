// The twin of props/cli/no_mutated_engine.cpp for the program with faults.
#include "props/cli/mutated_engine.h"

#include <fmt/format.h>

#include "props/cli/replay_engine.h"
#include "props/cli/sibling.h"
#include "props/cli/verb.h"
#include "props/mutation/cli/counterexample_files.h"
#include "props/mutation/fault.h"
#include "props/mutation/hunt_findings.h"

namespace zeroproof {

const char* sibling_for(const std::vector<std::string>& words) {
  const bool is_score = words.front() == "score" ||
                        (words.front() == "help" && words.size() > 1 && words[1] == "score");
  return is_score ? kScoreProgram : nullptr;
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

Result<Picture> mutation_picture(const std::string& word, const Session& session) {
  const auto schedule = EngineReplayVerb::schedule_in(word);
  if (!schedule) return tl::unexpected(schedule.error());
  const auto token = mutation::read_token(schedule_text(*schedule), "show");
  if (!token) return tl::unexpected(token.error());
  const auto mutated = mutation::replay(token->counterexample, mutation::find_fault(token->id));
  auto shown = show_counterexample(*token, located_findings(*token, mutated), session.program);
  if (!shown) return tl::unexpected(shown.error());
  return std::move(shown->picture);
}

}  // namespace zeroproof
