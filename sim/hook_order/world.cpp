#include "sim/hook_order/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "model/check.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof::hook_order {
namespace {

constexpr std::array<std::string_view, Device::kStreams> kStreamNames = {"compute", "reduction",
                                                                         "all_gather", "offload"};

// Of the bit that `index` others stand below.
std::uint8_t place_of_bit(std::uint64_t bits, std::size_t index) {
  for (; index != 0; --index) bits &= bits - 1;
  return static_cast<std::uint8_t>(std::countr_zero(bits));
}

std::uint64_t place_of_order(std::uint32_t pass, std::size_t at) {
  return std::uint64_t{4} << 60 | std::uint64_t{pass} << 8 | at;
}

}  // namespace

World::World(const Settings& settings)
    : settings_(settings), board_(settings.ranks, facts_), surroundings_{board_, facts_} {
  moves_.resize(settings_.ranks * kMovesMax);
  move_names_.resize(moves_.size());
  make_names();
  build();
}

void World::make_names() {
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    for (std::uint32_t p = 0; p < Settings::kHooksMax; ++p)
      names_.push_back(fmt::format("r{}.p{}", rank, p));
    names_.push_back(fmt::format("r{}.end", rank));
    for (const std::string_view stream : kStreamNames)
      names_.push_back(fmt::format("r{}.{}", rank, stream));
  }
  name_views_.assign(names_.begin(), names_.end());
}

std::span<const std::string_view> World::names_of_moves() {
  write_moves();
  for (std::size_t i = 0; i < moves_count_; ++i) move_names_[i] = name(moves_[i]);
  return {move_names_.data(), moves_count_};
}

World::~World() = default;

void World::build() {
  ranks_.clear();
  devices_.clear();
  ground_.clear();
  ++engines_made_;
  BackwardObserver& observer = *this;
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    devices_.push_back(std::make_unique<Device>(settings_, rank, surroundings_, observer));
    ranks_.push_back(std::make_unique<Rank>(settings_, rank, *devices_.back()));
    ground_.push_back(ranks_.back()->digest());
    devices_.back()->scramble_memory();
  }
  digests_ = ground_;
}

// --- one execution -----------------------------------------------------------------------------

void World::begin() {
  violated_ = {};
  is_stuck_ = false;
  for (CommonOrder& order : orders_) order = {std::move(order.hooks), 0};
  for (CommonOrder& order : orders_) order.hooks.clear();
  places_ = {};
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    devices_[rank]->set_quiet(false);
    ranks_[rank]->begin();
  }
  stale_ = (1U << settings_.ranks) - 1;
}

std::span<const Move> World::enabled() {
  count_enabled();
  write_moves();
  return {moves_.data(), moves_count_};
}

std::size_t World::count_enabled() {
  std::size_t count = 0;
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    look_at_host(rank);
    look_at_streams(rank);
    count += possible_[rank].host_moves + possible_[rank].completions_count;
  }
  if (count == 0 && !is_over()) {
    is_stuck_ = true;
    if (violated_.is_empty()) violate(Property::a5, who_waits());
  }
  return count;
}

void World::look_at_host(std::uint32_t rank) {
  Possible& of = possible_[rank];
  of.hooks = 0;
  of.host_moves = 0;
  if (!is_rank_free(rank)) return;
  of.hooks = ranks_[rank]->open_hooks();
  of.host_moves = std::max<std::size_t>(ranks_[rank]->open_hooks_count(), 1);  // or the end
  if (of.hooks == 0 || settings_.is_any_order()) return;
  const auto& order = orders_[ranks_[rank]->pass()].hooks;
  if (places_[rank] == order.size()) return;
  of.hooks = std::uint64_t{1} << order[places_[rank]];
  of.host_moves = 1;
}

void World::look_at_streams(std::uint32_t rank) {
  Possible& of = possible_[rank];
  of.completions = 0;
  of.completions_count = 0;
  for (std::uint32_t bits = devices_[rank]->arrived(); bits != 0; bits &= bits - 1) {
    const auto stream = static_cast<std::uint32_t>(std::countr_zero(bits));
    if (!devices_[rank]->at(stream).can_complete()) continue;
    of.completions |= std::uint64_t{1} << stream;
    ++of.completions_count;
  }
}

void World::write_moves() {
  moves_count_ = 0;
  const auto ranks = static_cast<std::uint8_t>(settings_.ranks);
  for (std::uint8_t rank = 0; rank < ranks; ++rank) {
    for (std::uint64_t open = possible_[rank].hooks; open != 0; open &= open - 1)
      add({rank, MoveKind::hook, static_cast<std::uint8_t>(std::countr_zero(open))});
    if (possible_[rank].hooks == 0 && possible_[rank].host_moves != 0)
      add({rank, MoveKind::end, 0});
  }
  for (std::uint8_t rank = 0; rank < ranks; ++rank)
    for (std::uint64_t bits = possible_[rank].completions; bits != 0; bits &= bits - 1)
      add({rank, MoveKind::complete, static_cast<std::uint8_t>(std::countr_zero(bits))});
}

Move World::enabled_at(std::size_t index) const {
  for (std::uint8_t rank = 0; rank < settings_.ranks; ++rank) {
    const Possible& of = possible_[rank];
    if (index < of.host_moves)
      return of.hooks == 0 ? Move{rank, MoveKind::end, 0}
                           : Move{rank, MoveKind::hook, place_of_bit(of.hooks, index)};
    index -= of.host_moves;
  }
  for (std::uint8_t rank = 0; rank < settings_.ranks; ++rank) {
    const Possible& of = possible_[rank];
    if (index < of.completions_count)
      return {rank, MoveKind::complete, place_of_bit(of.completions, index)};
    index -= of.completions_count;
  }
  ZP_CHECK(false, "a move that is not possible");
}

bool World::is_rank_free(std::uint32_t rank) const {
  return !ranks_[rank]->is_done() && !devices_[rank]->is_held_up();
}

bool World::is_first_pass() const {
  return std::ranges::all_of(
      ranks_, [](const auto& rank) { return rank->pass() == 0 && !rank->is_done(); });
}

std::uint64_t World::progress(std::uint32_t rank) const {
  const Rank& of = *ranks_[rank];
  return of.pass() * std::uint64_t{100} +
         static_cast<std::uint64_t>(std::popcount(of.all_hooks() & ~of.open_hooks()));
}

// After what others fired and the rank has fired too, or does not have to.
void World::find_places(std::uint32_t pass) {
  CommonOrder& order = orders_[pass];
  const std::size_t size = order.hooks.size();
  std::size_t common = size;
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    const Rank& of = *ranks_[rank];
    if (of.is_done() || of.pass() > pass) continue;
    if (of.pass() < pass) {
      common = 0;
      continue;
    }
    std::size_t& place = places_[rank];
    while (place < size && (of.open_hooks() >> order.hooks[place] & 1) == 0) ++place;
    common = std::min(common, place);
  }
  for (; order.common < common; ++order.common)
    facts_.remove(place_of_order(pass, order.common), order.hooks[order.common]);
}

void World::take(Move move) {
  stale_ |= 1U << move.rank;
  try {
    switch (move.kind) {
      case MoveKind::hook:
        fire(move.rank, move.index);
        break;
      case MoveKind::end:
        end_pass(move.rank);
        break;
      case MoveKind::complete:
        devices_[move.rank]->complete(move.index);
        break;
    }
  } catch (const EngineError& error) {
    violate(Property::a8, fmt::format("rank {}: {}", move.rank, error.what()));
    ranks_[move.rank]->fail();
    if (!settings_.is_any_order()) find_places(ranks_[move.rank]->pass());
  }
  if (!board_.mismatch().empty()) violate(Property::a4, board_.mismatch());
}

void World::take_at(std::size_t index) {
  take(enabled_at(index));
}

void World::fire(std::uint32_t rank, std::uint32_t p) {
  Rank& of = *ranks_[rank];
  if (!settings_.is_any_order()) {
    auto& order = orders_[of.pass()].hooks;
    if (places_[rank] == order.size()) {
      facts_.add(place_of_order(of.pass(), order.size()), p);
      order.push_back(static_cast<std::uint8_t>(p));
    }
  }
  const std::uint64_t open = of.open_hooks();
  const bool is_last = (open & (open - 1)) == 0;
  if (settings_.defect == Defect::split_task && is_last && rank + 1 == settings_.ranks)
    of.split_task();
  if (of.has_epilogue())
    violate(Property::a2,
            fmt::format("rank {}: the hook of p{} fires after the epilogue", rank, p));
  of.fire(p);
  if (settings_.defect == Defect::double_hook && is_last && rank + 1 == settings_.ranks) of.fire(p);
  if (!settings_.is_any_order()) find_places(of.pass());
}

void World::end_pass(std::uint32_t rank) {
  Rank& of = *ranks_[rank];
  const std::uint32_t pass = of.pass();
  const std::int64_t epilogues = of.end_pass();
  if (epilogues != 1)
    violate(Property::a1,
            fmt::format("rank {}: {} epilogues in backward {}", rank, epilogues, pass));
  if (epilogues > 0) devices_[rank]->push_done(pass);
  if (settings_.is_any_order()) return;
  places_[rank] = 0;
  find_places(pass);
  find_places(of.pass());
}

bool World::is_over() const {
  if (is_stuck_) return true;
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank)
    if (!ranks_[rank]->is_done() || !devices_[rank]->is_idle()) return false;
  return true;
}

void World::end() {
  facts_.clear();
  board_.clear();
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    devices_[rank]->clear();
    devices_[rank]->set_quiet(true);
    ranks_[rank]->reset();
    devices_[rank]->scramble_memory();
  }
}

bool World::restore() {
  if (is_at_ground()) return true;
  build();
  return false;
}

bool World::is_at_ground() const {
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank)
    if (ranks_[rank]->digest() != ground_[rank] || ranks_[rank]->has_gradient_left()) return false;
  return true;
}

// --- what is seen ------------------------------------------------------------------------------

void World::on_backward_done(std::uint32_t rank, std::uint32_t pass) {
  if (ranks_[rank]->is_window_right(pass + 1)) return;
  const bool is_early = !devices_[rank]->is_idle();
  violate(is_early ? Property::a3 : Property::a6,
          fmt::format("rank {}: after backward {} the window {}", rank, pass,
                      is_early ? "is read before it is reduced"
                               : "has not each contribution exactly once"));
}

void World::on_race(std::uint32_t rank) {
  violate(Property::a3,
          fmt::format("rank {}: memory is used that another stream still works on", rank));
}

void World::violate(Property property, std::string explanation) {
  if (violated_.has(property)) return;
  violated_.add(property);
  explanations_[static_cast<std::size_t>(property)] = std::move(explanation);
}

std::string World::who_waits() const {
  std::string text;
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    if (devices_[rank]->is_idle() && ranks_[rank]->is_done()) continue;
    text += fmt::format("{}rank {} waits after {} collectives", text.empty() ? "" : ", ", rank,
                        board_.calls(rank));
  }
  return text;
}

void World::trust(std::span<const Fingerprint> ranks) const {
  std::ranges::copy(ranks, digests_.begin());
  stale_ = 0;
}

Fingerprint World::fingerprint() const {
  for (; stale_ != 0; stale_ &= stale_ - 1) {
    const auto rank = static_cast<std::size_t>(std::countr_zero(stale_));
    digests_[rank] = ranks_[rank]->digest();
  }
  IncrementalHash all = facts_;
  all.add(std::uint64_t{5} << 60, violated_.bits());
  for (const Fingerprint& digest : digests_) all.add_all(digest);
  return all.sum();
}

}  // namespace zeroproof::hook_order
