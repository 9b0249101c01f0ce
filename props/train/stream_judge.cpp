#include "props/train/stream_judge.h"

namespace zeroproof::train {

std::vector<RankObservers> StreamJudge::observers() {
  std::vector<RankObservers> all;
  for (StreamOrderCheck& rank : ranks_) all.push_back({.accesses = &rank});
  return all;
}

PropertiesReport StreamJudge::finish() {
  PropertiesReport all;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank].finish();
    PropertiesReport own;
    for (Verdict verdict : ranks_[rank].verdicts()) {
      for (Finding& finding : verdict.findings) finding.rank = static_cast<std::int32_t>(rank);
      own.add(verdict);
    }
    all.merge(own);
  }
  return all;
}

}  // namespace zeroproof::train
