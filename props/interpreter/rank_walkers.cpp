#include "props/interpreter/rank_walkers.h"

#include "props/interpreter/program_worlds.h"
#include "props/reference/rest.h"

namespace zeroproof::program {

RankWalkers::RankWalkers(const RunnableProgram& runnable, const EngineVariant& variant,
                         train::RunJudge& judge)
    : worlds_(program_worlds(runnable, variant)) {
  const int ranks = runnable.segments().back().ranks * runnable.program().world.tensor;
  for (int rank = 0; rank < ranks; ++rank) {
    train::RankJudge& of_rank = judge.rank(static_cast<std::size_t>(rank));
    of_rank.listen(walkers_.emplace_back(of_rank.names(), worlds_));
  }
}

void RankWalkers::finish(const std::vector<RankRun>& ranks) {
  for (std::size_t rank = 0; rank < walkers_.size(); ++rank) {
    reference::Walker& walker = walkers_[rank];
    walker.finish(!ranks.at(rank).error);
    reference::Ledger rests;
    for (const std::int64_t live : ranks[rank].rest_bytes)
      reference::judge_rest(worlds_, live, rests);
    std::vector<reference::Finding>& own = findings_.emplace_back(walker.findings());
    own.insert(own.end(), rests.findings().begin(), rests.findings().end());
    coverage_.add(walker.coverage());
    coverage_.add(rests.coverage());
  }
}

void RankWalkers::for_each_finding(const See& see) const {
  for (std::size_t rank = 0; rank < findings_.size(); ++rank)
    for (const reference::Finding& finding : findings_[rank]) see(static_cast<int>(rank), finding);
}

}  // namespace zeroproof::program
