// Several graphs at once, graphs that are kept, and those that are given up.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

bool two_in_order(Scene& scene) {
  const auto first = scene.loss();
  const auto second = scene.loss();
  return first && second && scene.differentiate_all(*first) && scene.differentiate_all(*second);
}

bool two_reversed(Scene& scene) {
  const auto first = scene.loss();
  const auto second = scene.loss();
  return first && second && scene.differentiate_all(*second) && scene.differentiate_all(*first);
}

bool two_summed(Scene& scene) {
  const auto first = scene.loss();
  const auto second = scene.loss();
  const std::string sum = scene.new_value();
  return first && second && scene.add({Sum{.values = {*first, *second}, .as = sum}}) &&
         scene.differentiate(sum);
}

bool has_two_losses(const Scene& scene) {
  return scene.model().losses() == 2 && !scene.has_frames();
}

// One loss of each graph, and then the others, the later graph first.
bool interleaved(Scene& scene) {
  const auto first = scene.loss();
  const auto second = scene.loss();
  return first && second && scene.differentiate(*first, {.retain_graph = true}) &&
         scene.differentiate(*second, {.retain_graph = true}) &&
         scene.differentiate(*second + ".1") && scene.drop(*second) &&
         scene.differentiate(*first + ".1");
}

// Two graphs are kept, and one between them is over.
bool three_graphs(Scene& scene) {
  const auto first = scene.loss();
  if (!first || !scene.differentiate(*first, {.retain_graph = true})) return false;
  const auto second = scene.loss();
  if (!second || !scene.differentiate(*second + ".1", {.retain_graph = true}) ||
      !scene.differentiate(*second) || !scene.drop(*second))
    return false;
  const auto third = scene.loss();
  if (!third || !scene.differentiate(*third + ".1", {.retain_graph = true})) return false;
  return !scene.source().one_in(2) || (scene.drop(*first) && scene.drop(*third));
}

// The graph lives after its step, or until the program drops it.
bool kept_graph(Scene& scene) {
  const auto value = scene.loss();
  if (!value || !scene.differentiate(*value, {.retain_graph = true})) return false;
  if (!scene.source().one_in(2)) return true;
  return scene.drop(*value) &&
         (!scene.source().one_in(2) || scene.add({ZeroGrad{.engine = scene.engine()}}));
}

// One of the losses of a graph that is kept.
std::string loss_of(Scene& scene, const std::string& value) {
  return scene.model().losses() == 2 && scene.source().one_in(2) ? value + ".1" : value;
}

// Up to three graphs, whose losses have backwards in any order, and which are dropped.
class GraphTurns {
 public:
  explicit GraphTurns(Scene& scene) : scene_(scene) {}

  bool run() {
    const int turns = scene_.source().between(3, 8);
    for (int i = 0; i < turns; ++i) turn();
    while (!graphs_.empty() && has_backward_ && scene_.source().one_in(2)) end();
    return has_backward_;
  }

 private:
  void turn() {
    constexpr std::array<std::uint32_t, 4> kEach = {3, 4, 2, 1};
    const std::size_t what = scene_.source().weighted(kEach);
    if (graphs_.empty() || (what == 0 && graphs_.size() < 3)) return begin();
    if (what < 2) return differentiate(true);
    if (what == 2) return end();
    scene_.drop(take());
  }

  void begin() {
    if (const auto value = scene_.loss()) graphs_.push_back(*value);
  }

  void differentiate(bool keeps) {
    const std::string value = graphs_[which()];
    has_backward_ |= scene_.differentiate(loss_of(scene_, value), {.retain_graph = keeps});
  }

  void end() {
    const std::string value = take();
    has_backward_ |= scene_.differentiate(loss_of(scene_, value));
  }

  std::size_t which() { return scene_.source().below(static_cast<std::uint32_t>(graphs_.size())); }

  std::string take() {
    const auto at = graphs_.begin() + static_cast<std::ptrdiff_t>(which());
    std::string value = *at;
    graphs_.erase(at);
    return value;
  }

  Scene& scene_;
  std::vector<std::string> graphs_;
  bool has_backward_ = false;
};

bool graphs_in_turns(Scene& scene) {
  return GraphTurns(scene).run();
}

bool differentiate_again(Scene& scene) {
  const auto value = scene.loss();
  return value && scene.differentiate(*value, {.retain_graph = true}) &&
         scene.differentiate_all(*value);
}

bool create_graph(Scene& scene) {
  const auto value = scene.loss();
  if (!value || !scene.differentiate_managed(*value, {.create_graph = true})) return false;
  if (scene.source().one_in(2)) return scene.differentiate_managed(*value);
  return !scene.source().one_in(2) || scene.drop(*value);
}

bool can_drop_alone(const Scene& scene) {
  return has_plain_graphs(scene) && scene.state().ranks > 1 &&
         scene.program().engines.size() == 1 && scene.program().world.tensor == 1;
}

// One rank alone gives up what all have kept.
bool drop_on_one_rank(Scene& scene) {
  const auto first = scene.loss();
  const auto second = scene.loss();
  if (!first || !second || !scene.differentiate(*first, {.retain_graph = true})) return false;
  const int rank = scene.source().between(0, scene.state().ranks - 1);
  return scene.add({Drop{.value = *first, .rank = rank}}) && scene.differentiate_all(*second);
}

// In the order of training, or without some module.
bool evaluate(Scene& scene) {
  Forward forward = scene.forward();
  forward.mode = Forward::Mode::no_grad;
  if (scene.source().one_in(3)) forward.skips.push_back({.module = *scene.some_owner(false)});
  return scene.add({forward});
}

// A forward without a backward, whose graph is dropped or stays.
bool unspent_forward(Scene& scene) {
  Forward forward = scene.forward();
  if (!scene.add_forward(forward)) return false;
  return !scene.source().one_in(2) || scene.drop(forward.as);
}

bool can_transform(const Scene& scene) {
  return scene.is_alone() && scene.traits().is_plain && !scene.is_autocast() &&
         scene.config().model_dtype() == DType::float32 && scene.model().losses() == 1 &&
         scene.model().container == Container::tensors && !scene.has_frames();
}

bool transform(Scene& scene) {
  return scene.add({Transform{.engine = scene.engine(),
                              .kind = static_cast<Transform::Kind>(scene.source().below(3))}});
}

bool can_wrap(const Scene& scene) {
  return has_plain_graphs(scene) && scene.is_stage(0, 2) && scene.program().engines.size() == 1 &&
         scene.model().losses() == 1 && !scene.traits().has_experts &&
         scene.model().container == Container::tensors && !scene.model().has_constant_output &&
         !scene.model().returns_activations;
}

// A checkpoint of the user around the engine's forward.
bool wrapped_forward(Scene& scene) {
  const auto around =
      scene.source().one_in(2) ? Forward::Around::non_reentrant : Forward::Around::reentrant;
  const auto wrapped = [&] {
    Forward forward = scene.forward();
    forward.inputs_need_grad = true;
    forward.around = around;
    return scene.add({forward}) ? forward.as : std::string();
  };
  const std::string first = wrapped();
  if (first.empty()) return false;
  if (!scene.source().one_in(3)) return scene.differentiate(first);
  const std::string second = wrapped();
  if (second.empty()) return false;
  const std::string sum = scene.new_value();
  if (scene.source().one_in(2)) return scene.differentiate(second) && scene.differentiate(first);
  return scene.add({Sum{.values = {first, second}, .as = sum}}) && scene.differentiate(sum);
}

bool is_joinable(const Scene& scene) {
  return scene.other_engine() && scene.state().supports_manual_backward();
}

// A loss of both engines, one of which runs its backward, or the autograd.
bool joined_engines(Scene& scene) {
  const std::string own = scene.engine();
  const std::string other = *scene.other_engine();
  const auto first = scene.loss();
  scene.choose_engine(other);
  auto second = scene.loss();
  const bool is_manual = scene.state().supports_manual_backward() && scene.source().one_in(2);
  const bool scales_other = scene.needs_scaler();
  if (second && scales_other) {
    const std::string scaled = scene.new_value();
    const Scale scale{.engine = other, .value = *second, .as = scaled};
    second = scene.add({scale}) ? std::optional(scaled) : std::nullopt;
  }
  scene.choose_engine(own);
  if (!first || !second) return false;
  std::string left = *first;
  if (is_manual && scene.needs_scaler()) {
    left = scene.new_value();
    if (!scene.add({Scale{.engine = own, .value = *first, .as = left}})) return false;
  }
  const std::string sum = scene.new_value();
  if (!scene.add({Sum{.values = {left, *second}, .as = sum}})) return false;
  Backward backward;
  backward.engine = is_manual ? "" : own;
  backward.value = sum;
  if (!scene.add({backward})) return false;
  scene.mark_trained(other);
  return true;
}

bool has_branches(const Scene& scene) {
  return weight_owners(scene.model()).size() > 1;
}

// A forward that leaves out some module.
std::optional<std::string> partial_loss(Scene& scene) {
  Forward forward = scene.forward();
  forward.skips.push_back({.module = *scene.some_owner(false)});
  return scene.add_forward(forward) ? std::optional(forward.as) : std::nullopt;
}

bool skipped_module(Scene& scene) {
  const auto value = partial_loss(scene);
  return value && scene.differentiate_all(*value);
}

// Two graphs at once, each of which leaves out some module.
bool branches(Scene& scene) {
  auto first = partial_loss(scene);
  auto second = partial_loss(scene);
  if (!first || !second) return false;
  if (scene.source().one_in(2)) std::swap(first, second);
  return scene.differentiate_all(*first) && scene.differentiate_all(*second);
}

bool can_differ(const Scene& scene) {
  return scene.is_stage(0, 0) && scene.state().ranks > 1 && has_branches(scene);
}

bool skipped_on_one_rank(Scene& scene) {
  const auto module = scene.some_owner(false);
  Forward forward = scene.forward();
  forward.skips.push_back(
      {.module = *module, .rank = scene.source().between(0, scene.state().ranks - 1)});
  return scene.add_forward(forward) && scene.differentiate_all(forward.as);
}

// --- frames that the compiler skipped -----------------------------------------------------------

bool has_frames_and_branches(const Scene& scene) {
  return scene.has_frames() && has_branches(scene);
}

bool evaluate_guards(Scene& scene) {
  return scene.add({EvaluateGuards{.engine = scene.engine()}});
}

bool abandon_frames(Scene& scene) {
  Forward forward = scene.forward();
  if (!scene.add_forward(forward)) return false;
  const Block look{.kind = Block::Kind::gathered, .engine = scene.engine()};
  if (scene.source().one_in(2) && !scene.around({look}, [&] {
        return scene.add({Inspect{.engine = scene.engine(), .what = Inspect::What::weights}});
      }))
    return false;
  return scene.drop(forward.as) && scene.add({ReleaseGathered{.engine = scene.engine()}});
}

bool look_in_frame(Scene& scene) {
  Forward forward = scene.forward();
  const auto module = scene.some_hooked_module(forward);
  if (!module) return false;
  Block look{.kind = Block::Kind::gathered, .engine = scene.engine()};
  look.body.push_back({Inspect{.engine = scene.engine(), .what = Inspect::What::weights}});
  Body body;
  body.push_back({look});
  forward.hooks.push_back(Scene::hook(Hook::At::forward, *module, std::move(body)));
  return scene.add_forward(forward) && scene.differentiate_all(forward.as);
}

}  // namespace

std::span<const Production> graph_productions() {
  constexpr std::uint32_t kRetained = tags(Tag::retained);
  constexpr std::uint32_t kFrames = tags(Tag::frames);
  static constexpr Production kRows[] = {
      {"two_in_order", 3, kRetained, Position::training, has_no_tiles, two_in_order},
      {"two_reversed", 3, kRetained, Position::training, has_no_tiles, two_reversed},
      {"two_summed", 3, kRetained, Position::training, has_no_tiles, two_summed},
      {"interleaved", 4, kRetained, Position::training, has_two_losses, interleaved, 3},
      {"three_graphs", 4, kRetained, Position::training, has_two_losses, three_graphs, 3},
      {"kept_graph", 4, kRetained, Position::training, has_plain_graphs, kept_graph, 2},
      {"graphs_in_turns", 6, kRetained, Position::training, has_plain_graphs, graphs_in_turns, 3},
      {"differentiate_again", 3, kRetained, Position::training, has_plain_graphs,
       differentiate_again},
      {"create_graph", 3, kRetained, Position::training, has_plain_graphs, create_graph},
      {"drop_on_one_rank", 5, kRetained, Position::training, can_drop_alone, drop_on_one_rank, 2},
      {"evaluate", 4, tags(Tag::inspection), Position::aside, has_no_tiles, evaluate},
      {"unspent_forward", 3, kRetained, Position::aside, has_no_tiles, unspent_forward},
      {"transform", 5, tags(Tag::transforms), Position::aside, can_transform, transform, 6},
      {"wrapped_forward", 4, tags(Tag::recompute), Position::training, can_wrap, wrapped_forward,
       4},
      {"joined_engines", 8, tags(Tag::engines), Position::training, is_joinable, joined_engines},
      {"skipped_module", 3, tags(Tag::parameters), Position::training, has_branches,
       skipped_module},
      {"branches", 3, tags(Tag::parameters, Tag::retained), Position::training, has_branches,
       branches},
      {"branches_of_frames", 5, kFrames, Position::training, has_frames_and_branches, branches, 2},
      {"skipped_on_one_rank", 5, tags(Tag::worlds), Position::training, can_differ,
       skipped_on_one_rank, 4},
      {"evaluate_guards", 4, kFrames, Position::aside, has_frames, evaluate_guards},
      {"abandon_frames", 5, kFrames, Position::aside, has_frames, abandon_frames},
      {"look_in_frame", 3, kFrames | tags(Tag::contexts), Position::training, has_frames,
       look_in_frame, 2}};
  return kRows;
}

}  // namespace zeroproof::program
