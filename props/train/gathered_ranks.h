#pragma once

#include <exception>
#include <string>
#include <vector>

#include "props/train/cell_run.h"
#include "props/train/decoder_run.h"
#include "zeroproof/engine/runtime/process/job.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

// Gives every process the results of all ranks of a job: each brings its own, which is all that it
// has. Without a job it is a no-op. A process that fails meanwhile becomes the error of this one's
// rank.
void gather_ranks(Job* job, std::vector<RankRun>& ranks);
void gather_ranks(Job* job, std::vector<DecoderRank>& ranks);  // without parameters

// The first error of any process, on all of them. Throws RuntimeFault.
Result<void> agree(Job* job, const Result<void>& own);

// What a process that cannot go on says of it; the others hear of it too.
std::string tell_others(Job& job, const std::exception_ptr& own);

}  // namespace zeroproof::train
