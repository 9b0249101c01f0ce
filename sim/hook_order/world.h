#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hook_order/move.h"
#include "sim/hook_order/property.h"
#include "sim/hook_order/rank.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::hook_order {

// P real engines side by side, whose hooks fire in any order: one execution is K backwards on each
// rank, from the first hook to the last collective. The engines are made once; an execution ends
// where it began, so that it costs its own events only. What a rank does is a step: the engine
// never blocks (docs/spec/explorer.md 6, lesson 1).
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
  // What may happen next, ranks first and in their order; valid until the next call. Where no move
  // may although something is left to do, A5 is violated.
  std::span<const Move> enabled();
  // The same for those who only pick: how many, and the one at `index`.
  std::size_t count_enabled();
  Move enabled_at(std::size_t index) const;
  void take(Move move);
  void take_at(std::size_t index);
  // Everything is done, or no move is left. What is violated does not end it, so that
  // a later violation is seen, too.
  bool is_over() const;
  PropertySet violated() const { return violated_; }  // so far
  const std::string& explanation(Property property) const {
    return explanations_[static_cast<std::size_t>(property)];
  }
  // Of everything that decides how the execution can go on. Only what has changed since the last
  // call is looked at again.
  Fingerprint fingerprint() const;
  // What of it the ranks are, and the same of an execution of the same moves: then it need not be
  // looked at again. Of the last fingerprint().
  std::span<const Fingerprint> ranks() const { return digests_; }
  void trust(std::span<const Fingerprint> ranks) const;
  // From wherever the execution is back to where all begin.
  void end();
  // After end(): whether all is as it was. Otherwise the engines are made again.
  bool restore();

  std::string_view name(Move move) const {  // "r0.p3", "r1.end", "r0.reduction"
    return name_views_[place_of(move)];
  }
  std::span<const std::string_view> names_of_moves();  // of the last enabled() or count_enabled()
  // Calls through the seam's ports (hooks and graph tasks; kernels and memory; streams;
  // collectives) and decisions between several moves.
  std::uint64_t events() const { return surroundings_.events; }
  void count_decision() { ++surroundings_.events; }
  std::uint64_t engines_made() const { return engines_made_; }
  bool is_first_pass() const;  // of every rank
  // How far the rank is, for the search.
  bool is_rank_free(std::uint32_t rank) const;  // it can take a step of its own
  std::uint64_t progress(std::uint32_t rank) const;

 private:
  void on_backward_done(std::uint32_t rank, std::uint32_t pass) override;
  void on_race(std::uint32_t rank) override;

  static constexpr std::size_t kMovesMax = Settings::kHooksMax + 1 + Device::kStreams;  // a rank's
  static std::size_t place_of(Move move) {
    constexpr std::array<std::size_t, 3> kFirst = {0, Settings::kHooksMax, Settings::kHooksMax + 1};
    return move.rank * kMovesMax + kFirst[static_cast<std::size_t>(move.kind)] + move.index;
  }

  void make_names();
  void build();
  void violate(Property property, std::string explanation);
  // What a rank's host and streams may do next, a bit each.
  struct Possible {
    std::uint64_t hooks = 0;
    std::size_t host_moves = 0;     // so many hooks, or the end
    std::uint64_t completions = 0;  // by stream
    std::size_t completions_count = 0;
  };
  void look_at_host(std::uint32_t rank);
  void look_at_streams(std::uint32_t rank);
  void add(Move move) { moves_[moves_count_++] = move; }
  void write_moves();
  void fire(std::uint32_t rank, std::uint32_t p);
  void end_pass(std::uint32_t rank);
  // In Order::same: brings up to date where in the order of the pass its ranks are, and what of the
  // order some rank still has to follow.
  void find_places(std::uint32_t pass);
  bool is_at_ground() const;
  std::string who_waits() const;

  Settings settings_;
  IncrementalHash facts_;
  CollectiveTable board_;
  Surroundings surroundings_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Fingerprint> ground_;  // by rank
  mutable std::vector<Fingerprint> digests_;
  mutable std::uint32_t stale_ = 0;  // a bit for each rank whose digest has to be taken again
  std::array<Possible, Settings::kRanksMax> possible_{};
  std::vector<Move> moves_;      // room for all that there can be
  std::size_t moves_count_ = 0;  // of them, possible now
  // By pass, Order::same: what the first to come there chose. From `common` on, some rank has not
  // come so far, so those are facts.
  struct CommonOrder {
    std::vector<std::uint8_t> hooks;
    std::size_t common = 0;
  };
  std::array<CommonOrder, 4> orders_;
  std::array<std::size_t, Settings::kRanksMax> places_{};  // of each rank, in the order of its pass
  std::vector<std::string> names_;                         // by place_of()
  std::vector<std::string_view> name_views_;               // of them
  std::vector<std::string_view> move_names_;               // of moves_
  PropertySet violated_;
  std::array<std::string, kProperties> explanations_;
  bool is_stuck_ = false;
  std::uint64_t engines_made_ = 0;
};

}  // namespace zeroproof::hook_order
