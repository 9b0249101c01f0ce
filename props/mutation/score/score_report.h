#pragma once

#include <string>

#include "props/mutation/score/score.h"
#include "props/report/palette.h"

namespace zeroproof {

// Killed and survived, by rule and by what killed; then every mutant that was not killed.
std::string score_text(const mutation::Corpus& corpus, const mutation::Score& score,
                       const Palette& palette);
// "zeroproof.score/1" (docs/reference/output.md).
std::string score_json(const mutation::Corpus& corpus, const mutation::Score& score);

}  // namespace zeroproof
