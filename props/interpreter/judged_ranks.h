#pragma once

#include <vector>

#include "props/interpreter/program_run.h"
#include "props/train/rank_judge.h"

namespace zeroproof::program {

// What train::RunJudge has to know of the ranks of a program's last world.
std::vector<train::RankFacts> judged_ranks(const RunnableProgram& runnable);

}  // namespace zeroproof::program
