#include "props/train/rank_tokens.h"

#include "engine/journal.h"
#include "props/train/model_recorder.h"
#include "sim/trace/order_token.h"

namespace zeroproof::train {

class RankTokens::Rank final : private EventSink {
 public:
  Rank(int rank, bool is_stage0) : journal_(*this, names_, rank), models_(journal_, is_stage0) {}

  Journal& journal() { return journal_; }
  ModelRecorder& models() { return models_; }
  const std::string& tokens() const { return tokens_; }

 private:
  void on_event(const HookEvent& event) override {
    if (append_order_token(event, names_, TokenDetail::engine, tokens_)) tokens_ += '\n';
  }

  NameTable names_;
  Journal journal_;
  ModelRecorder models_;
  std::string tokens_;
};

RankTokens::RankTokens(int world_size, bool is_stage0) {
  for (int rank = 0; rank < world_size; ++rank)
    ranks_.push_back(std::make_unique<Rank>(rank, is_stage0));
}

RankTokens::~RankTokens() = default;

std::vector<RankObservers> RankTokens::observers() {
  std::vector<RankObservers> all;
  for (const auto& rank : ranks_) all.push_back({.journal = &rank->journal()});
  return all;
}

void RankTokens::attach(std::size_t rank, EngineTarget::Options& options) {
  options.models = &ranks_[rank]->models();
  options.autograd = &ranks_[rank]->models();
}

const std::string& RankTokens::of(std::size_t rank) const {
  return ranks_[rank]->tokens();
}

}  // namespace zeroproof::train
