#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <vector>

#include "engine/zero/flat_group.h"
#include "engine/zero/gradient_divisor.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

// An update whose values reach the other ranks ahead of use (EngineOptions::gathers_ahead), in
// pieces that follow each other in the flat buffers. Pieces of the first parameter travel beside
// the update, as no product of a forward comes before their use. Later pieces travel beside the
// next forward, queued a few ahead of its modules, and each module waits for what its own
// parameters need. No gather is under way between a step and a forward, so a captured iteration
// gathers what the iteration before it left.
class GathersAhead {
 public:
  // All must outlive it. Puts hooks on the modules.
  GathersAhead(ZeroContext& context, std::deque<FlatGroup>& groups, const FlatSlots& slots);
  ~GathersAhead();
  GathersAhead(const GathersAhead&) = delete;
  GathersAhead& operator=(const GathersAhead&) = delete;

  // One step of the rank's slices, part by part; what owners have new is gathered.
  void update(const GradientDivisor& divisor);

  // The first of what an update left is on its way, if anything is left.
  void begin();
  // All of it is, and the computation waits for it.
  void finish();

  // Owners have new values by another way: a replay, or an iteration to come that is captured.
  void expect() { is_left_ = true; }
  // No work that was queued since the last expect() has run.
  void forget();

 private:
  // A part of one rank's slice.
  struct Piece {
    FlatGroup* group;
    int owner;
    FlatRange part;  // of the slice
    bool is_first;   // the first parameter has some of it
    Work work = {};  // on its way, unless it has none
  };

  void cut(FlatGroup& group);
  void mark_first();
  std::size_t end_of(const ZeroParameter& parameter) const;
  void observe(nn::Module& module);
  std::size_t end_of(const Tensor& read) const;
  void need(std::size_t end);

  void update(FlatGroup& group, const GradientDivisor& divisor);
  void gather(Piece& piece);
  void queue_up_to(std::size_t end);
  void wait_up_to(std::size_t end);
  Stream& stream() const { return context_.runtime.stream(StreamRole::all_gather); }

  ZeroContext& context_;
  std::deque<FlatGroup>& groups_;
  const FlatSlots& slots_;
  std::vector<Piece> pieces_;  // in the order of the flat buffers
  // Of a parameter: the pieces that it needs come before.
  std::map<const TensorImpl*, std::size_t> ends_;
  std::size_t firsts_ = 0;   // the last piece of the first parameter comes before
  std::size_t queued_ = 0;   // so many pieces of the last update
  std::size_t awaited_ = 0;  // so many of them, by the computation
  bool is_left_ = false;     // by the last update, and no gather has been queued
  std::vector<HookHandle> handles_;
  std::vector<nn::Module*> observed_;
};

}  // namespace zeroproof
