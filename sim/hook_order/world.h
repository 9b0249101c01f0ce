#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/choice.h"
#include "sim/hook_order/move.h"
#include "sim/hook_order/property.h"
#include "sim/hook_order/rank.h"

namespace zeroproof::hook_order {

// P real engines side by side, whose hooks fire in any order: one execution is K backwards on each
// rank, from the first hook to the last collective. The engines are made once; an execution ends
// where it began, so that it costs its own events only. What a rank does is a step: the engine
// never blocks (simulation_anchors 6, lesson 1).
//
//   world.begin();
//   while (!world.is_over()) world.take(one of world.enabled());
//   world.end();
class World final : private BackwardObserver {
 public:
  explicit World(const Settings& settings);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Settings& settings() const { return settings_; }

  void begin();
  // What may happen next, ranks first and in their order; valid until the next call. Where nothing
  // may although something is left to do, A5 is violated.
  std::span<const Move> enabled();
  void take(Move move);
  // Everything is done, or something is violated.
  bool is_over() const;
  Property violated() const { return violated_; }
  const std::string& explanation() const { return explanation_; }
  // Of everything that decides how the execution can go on. Only what has changed since the last
  // call is looked at again.
  Fingerprint fingerprint() const;
  // What of it the ranks are, and the same of an execution of the same moves: then it need not be
  // looked at again. Of the last fingerprint().
  std::span<const Fingerprint> ranks() const { return digests_; }
  void trust(std::span<const Fingerprint> ranks) const;
  // From wherever the execution is back to where all begin.
  void end();
  // After end(): whether all is as it was. Otherwise the engines are made anew.
  bool restore();

  std::string_view name(Move move) const;  // "r0.p3", "r1.end", "r0.reduction"
  std::uint64_t events() const { return surroundings_.events; }  // seam calls, and decisions
  void count_decision() { ++surroundings_.events; }
  std::uint64_t engines_made() const { return engines_made_; }
  bool is_first_pass() const;  // of every rank
  // How far the rank is, for the search.
  bool is_rank_free(std::uint32_t rank) const;  // it can take a step of its own
  std::uint64_t progress(std::uint32_t rank) const;

 private:
  void on_backward_done(std::uint32_t rank, std::uint32_t pass) override;
  void on_race(std::uint32_t rank) override;

  void build();
  void violate(Property property, std::string explanation);
  void add_host_moves(std::uint32_t rank);
  void fire(std::uint32_t rank, std::uint32_t p);
  void end_pass(std::uint32_t rank);
  // In Order::same: where in the order of its pass the rank is.
  std::size_t place_in_order(std::uint32_t rank) const;
  bool is_at_ground() const;
  std::string who_waits() const;

  Settings settings_;
  Facts facts_;
  Board board_;
  Surroundings surroundings_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Fingerprint> ground_;  // by rank
  mutable std::vector<Fingerprint> digests_;
  mutable std::uint32_t stale_ = 0;  // a bit for each rank whose digest has to be taken again
  std::vector<Move> moves_;
  std::array<std::vector<std::uint8_t>, 4> orders_;  // by pass, Order::same
  std::array<std::vector<std::string>, 3> names_;    // by kind
  Property violated_ = Property::none;
  std::string explanation_;
  std::uint64_t engines_made_ = 0;
};

}  // namespace zeroproof::hook_order
