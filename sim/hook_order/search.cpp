#include "sim/hook_order/search.h"

#include <algorithm>
#include <span>

#include "sim/hook_order/fingerprint_table.h"

namespace zeroproof::hook_order {
namespace {

constexpr std::uint64_t kExecutionsBetweenStopRequests = 256;
constexpr std::uint64_t kExecutionsBetweenComparisons = 16;

// Of what is possible, what has to be tried: moves stay in their order, the others go.
std::span<const Move> persistent(const World& world, std::span<const Move> moves) {
  std::optional<std::uint8_t> chosen;
  for (const Move& move : moves) {
    if (move.kind == MoveKind::complete) continue;
    const bool is_behind = chosen && !world.settings().is_any_order() &&
                           world.progress(move.rank) < world.progress(*chosen);
    if (!chosen || is_behind) chosen = move.rank;
  }
  if (!chosen) return moves.first(1);
  const auto is_of_chosen = [&](const Move& move) { return move.rank == *chosen; };
  const auto first = std::ranges::find_if(moves, is_of_chosen);
  const auto last = std::find_if_not(first, moves.end(), [&](const Move& move) {
    return is_of_chosen(move) && move.kind != MoveKind::complete;
  });
  return {first, last};
}

class Search {
 public:
  Search(World& world, const SearchOptions& options) : world_(world), options_(options) {}

  SearchResult run() {
    const std::uint64_t events = world_.events();
    do {
      if (must_stop()) break;
      execute();
    } while (result_.divergence.empty() && next_branch());
    result_.states = known_.size();
    result_.store_bytes = known_.bytes();
    result_.events = world_.events() - events;
    return std::move(result_);
  }

 private:
  struct Level {
    Fingerprint state;
    std::size_t first = 0;  // of its moves in moves_
    std::size_t taken = 0;
  };

  bool must_stop() {
    if (options_.stops_at_first && !result_.findings.empty()) return true;
    if (result_.executions % kExecutionsBetweenStopRequests != 0) return false;
    report_progress();
    return options_.should_stop && options_.should_stop() != StopRequest::none;
  }

  void report_progress() const {
    if (!options_.on_progress) return;
    ExploreProgress progress{.executions = result_.executions, .findings = result_.findings.size()};
    progress.scheduler.states = known_.size();
    options_.on_progress(progress);
  }

  void execute() {
    ++result_.executions;
    world_.begin();
    if (follow()) descend();
    const bool is_suspect =  // quirks and misuses may leave state for good
        !world_.violated().is_empty() || !world_.settings().quirks.is_empty();
    world_.end();
    if (is_suspect) world_.restore();
    if (result_.executions == 1) give_up_everywhere();
  }

  // A7: the first execution again, given up after each of its moves.
  void give_up_everywhere() {
    for (std::size_t length = 1; length < path_.size(); ++length) {
      world_.begin();
      for (std::size_t depth = 0; depth < length; ++depth) world_.take(taken_at(depth));
      const bool is_inside = world_.is_first_pass();
      world_.end();
      if (world_.restore() || !is_inside) continue;
      return note(Property::a7, "a rank is not what it was before the backward", length);
    }
  }

  // The way back to the branch that this execution is about. Now and then the last state is
  // compared with what it was.
  bool follow() {
    noted_ = {};
    for (std::size_t depth = 0; depth < path_.size(); ++depth) {
      if (depth + 1 == path_.size() && !is_same_state(path_[depth], depth)) return false;
      if (level_size(depth) > 1) world_.count_decision();
      noted_ = world_.violated();
      world_.take(taken_at(depth));
    }
    note_new();
    return true;
  }

  // What the last move violated.
  void note_new() {
    const PropertySet fresh = world_.violated().since(noted_);
    noted_ = world_.violated();
    if (fresh.is_empty()) return;
    for (std::size_t i = 1; i < kProperties; ++i) {
      const auto property = static_cast<Property>(i);
      if (fresh.has(property)) note(property, world_.explanation(property), path_.size());
    }
  }

  bool is_same_state(const Level& level, std::size_t depth) {
    const std::size_t ranks = world_.settings().ranks;
    const std::span<const Fingerprint> known(digests_.data() + depth * ranks, ranks);
    if (result_.executions % kExecutionsBetweenComparisons != 0) {
      world_.trust(known);
      return true;
    }
    if (world_.fingerprint() == level.state) return true;
    result_.divergence = "the same moves led to another state: the engines are not deterministic";
    return false;
  }

  Move taken_at(std::size_t depth) const { return moves_[path_[depth].first + path_[depth].taken]; }

  void descend() {
    while (true) {
      const Fingerprint state = world_.fingerprint();
      known_.prefetch(state);
      std::span<const Move> moves = world_.enabled();
      if (!known_.insert(state)) return;
      if (moves.empty()) {
        ++result_.complete;
        return note_new();  // A5
      }
      if (options_.is_reduced) moves = persistent(world_, moves);
      path_.push_back({state, moves_.size(), 0});
      digests_.resize((path_.size() - 1) * world_.settings().ranks);
      digests_.insert(digests_.end(), world_.ranks().begin(), world_.ranks().end());
      moves_.insert(moves_.end(), moves.begin(), moves.end());
      ++result_.transitions;
      if (moves.size() > 1) world_.count_decision();
      world_.take(moves.front());
      note_new();
    }
  }

  std::size_t level_size(std::size_t depth) const {
    const std::size_t end = depth + 1 < path_.size() ? path_[depth + 1].first : moves_.size();
    return end - path_[depth].first;
  }

  bool next_branch() {
    while (!path_.empty()) {
      Level& level = path_.back();
      if (++level.taken < moves_.size() - level.first) {
        ++result_.transitions;
        return true;
      }
      moves_.resize(level.first);
      path_.pop_back();
    }
    result_.has_exhausted = true;
    return false;
  }

  // `length`: of the path's moves, those that lead there.
  void note(Property property, const std::string& explanation, std::size_t length) {
    auto place = std::ranges::lower_bound(result_.findings, property, {}, &Finding::property);
    if (place == result_.findings.end() || place->property != property)
      place = result_.findings.insert(place, {property, "", {}});
    if (!place->moves.empty() && place->moves.size() <= length) return;
    place->explanation = explanation;
    place->moves.clear();
    for (std::size_t depth = 0; depth < length; ++depth) place->moves.push_back(taken_at(depth));
  }

  World& world_;
  const SearchOptions& options_;
  SearchResult result_;
  FingerprintTable known_;
  PropertySet noted_;  // of this execution's violations
  std::vector<Level> path_;
  std::vector<Move> moves_;           // of all levels of path_
  std::vector<Fingerprint> digests_;  // the same: of each rank
};

// Whether the moves are a run that violates the property, and with how many of them.
std::optional<std::size_t> violation_of(World& world, const std::vector<Move>& moves,
                                        Property property) {
  world.begin();
  std::size_t taken = 0;
  bool is_possible = true;
  while (true) {
    const std::span<const Move> enabled = world.enabled();  // sees also that no move is possible
    if (world.violated().has(property) || taken == moves.size()) break;
    is_possible = std::ranges::find(enabled, moves[taken]) != enabled.end();
    if (!is_possible) break;
    world.take(moves[taken++]);
  }
  bool is_violated = world.violated().has(property);
  const bool is_inside = is_possible && world.is_first_pass();
  world.end();
  const bool is_clean = world.restore();
  if (property == Property::a7) is_violated = is_inside && !is_clean;
  return is_violated ? std::optional(taken) : std::nullopt;
}

}  // namespace

bool SearchResult::has(Property property) const {
  return std::ranges::find(findings, property, &Finding::property) != findings.end();
}

SearchResult search(World& world, const SearchOptions& options) {
  return Search(world, options).run();
}

bool are_independent(const World& world, Move left, Move right) {
  const bool are_completions = left.kind == MoveKind::complete || right.kind == MoveKind::complete;
  if (left.rank == right.rank) return are_completions && left != right;
  const bool are_hooks = left.kind == MoveKind::hook && right.kind == MoveKind::hook;
  return world.settings().is_any_order() || !are_hooks;  // else the first decides for the second
}

Finding shortened(World& world, const Finding& finding) {
  Finding best = finding;
  for (std::size_t at = best.moves.size(); at-- > 0;) {
    if (at >= best.moves.size()) continue;
    std::vector<Move> fewer = best.moves;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
    const auto length = violation_of(world, fewer, best.property);
    if (!length) continue;
    fewer.resize(*length);
    best.moves = std::move(fewer);
  }
  return best;
}

}  // namespace zeroproof::hook_order
