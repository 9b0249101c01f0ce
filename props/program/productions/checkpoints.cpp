// Checkpoints: saved, loaded, by other engines, ranks and stages.
#include <algorithm>

#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

bool can_save(const Scene& scene) {
  return scene.program().world.tensor == 1;
}

bool has_saved(const Scene& scene) {
  const auto& saved = scene.state().saved;
  return can_save(scene) && std::ranges::any_of(saved, [&](const auto& tag) {
           return tag.second.contains(scene.engine());
         });
}

bool can_resume(const Scene& scene) {
  return can_save(scene) && scene.program().world.sequence == 1;
}

bool can_save_in_block(const Scene& scene) {
  return can_save(scene) && scene.some_block();
}

bool can_save_in_context(const Scene& scene) {
  return can_save(scene) && !(scene.is_autocast() && scene.has_weights_in_context());
}

bool can_save_in_pass(const Scene& scene) {
  return can_save(scene) && !scene.traits().has_tiles;
}

// A tag that the engine has saved, or that all have.
std::optional<std::string> saved_tag(Scene& scene, bool by_all) {
  std::vector<std::string> tags;
  for (const auto& [tag, engines] : scene.state().saved)
    if (engines.contains(scene.engine()) &&
        (!by_all || engines.size() == scene.program().engines.size()))
      tags.push_back(tag);
  if (tags.empty()) return std::nullopt;
  return tags[scene.source().below(static_cast<std::uint32_t>(tags.size()))];
}

bool save_as(Scene& scene, const std::string& tag) {
  return scene.add({Save{.engine = scene.engine(), .tag = tag}});
}

bool load_of(Scene& scene, const std::string& tag) {
  return scene.add({Load{.engine = scene.engine(), .tag = tag}});
}

bool save_all(Scene& scene, const std::string& tag) {
  const auto names = scene.engines();
  return std::ranges::all_of(names, [&](const std::string& engine) {
    return scene.add({Save{.engine = engine, .tag = tag}});
  });
}

std::string some_tag(Scene& scene) {
  return scene.source().one_in(3) ? "" : scene.new_tag();
}

bool save(Scene& scene) {
  return save_as(scene, some_tag(scene));
}

bool load(Scene& scene) {
  const auto tag = saved_tag(scene, false);
  return tag && load_of(scene, *tag);
}

// A window that a load undoes; with its step, or without.
bool load_away(Scene& scene) {
  const std::string tag = some_tag(scene);
  if (!save_as(scene, tag) || !scene.train()) return false;
  const bool steps = scene.is_boundary() || !scene.is_managed_accumulation();
  if (steps && !scene.source().one_in(3) && !scene.add({Step{.engine = scene.engine()}}))
    return false;
  return load_of(scene, tag);
}

// Two tags that begin alike, of which one is saved again and again.
bool save_tags(Scene& scene) {
  const std::string first = scene.new_tag();
  const std::string later = first + "-later";
  if (!save_as(scene, first) || !scene.train()) return false;
  if (!save_as(scene, later) || !save_as(scene, later) || !save_as(scene, first)) return false;
  return load_of(scene, scene.source().one_in(2) ? "" : later);
}

bool recreate(Scene& scene) {
  const std::string tag = some_tag(scene);
  return save_as(scene, tag) && scene.add({Recreate{.engine = scene.engine()}}) &&
         load_of(scene, tag);
}

// As it was some time ago.
bool recreate_older(Scene& scene) {
  const auto tag = saved_tag(scene, false);
  return tag && scene.add({Recreate{.engine = scene.engine()}}) && load_of(scene, *tag);
}

bool resume_with(Scene& scene, int ranks, int stage) {
  const auto older = scene.source().one_in(3) ? saved_tag(scene, true) : std::nullopt;
  const std::string tag = older ? *older : scene.new_tag();
  if (!older && !save_all(scene, tag)) return false;
  return scene.add({Resume{.ranks = ranks, .stage = stage, .tag = tag}});
}

bool resume_other_ranks(Scene& scene) {
  return resume_with(scene, scene.source().between(1, World::kMost), scene.state().stage);
}

bool resume_other_stage(Scene& scene) {
  const int ranks = scene.source().between(1, 3);
  return resume_with(scene, ranks, scene.source().between(0, 3));
}

bool save_in_context(Scene& scene) {
  return scene.around({context_of(scene)}, [&] { return save(scene); });
}

bool load_in_context(Scene& scene) {
  const std::string tag = scene.new_tag();
  return save_as(scene, tag) &&
         scene.around({context_of(scene)}, [&] { return load_of(scene, tag); });
}

bool checkpoint_in_block(Scene& scene) {
  const auto kind = *scene.some_block();
  const std::string tag = scene.new_tag();
  const bool loads = scene.source().one_in(2);
  return scene.around({Block{.kind = kind, .engine = scene.engine()}}, [&] {
    return save_as(scene, tag) && (!loads || load_of(scene, tag)) && scene.train();
  });
}

// In the middle of a forward.
bool save_in_forward(Scene& scene) {
  Forward forward = scene.forward();
  const auto module = scene.some_hooked_module(forward);
  if (!module) return false;
  const Save inside{.engine = scene.engine(), .tag = scene.new_tag()};
  forward.hooks.push_back(Scene::hook(Hook::At::forward, *module, {{inside}}));
  return scene.add_forward(forward) && scene.differentiate_all(forward.as);
}

// One tag, in whose files some writes fail one after the other.
bool failed_save(Scene& scene) {
  const std::string tag = scene.new_tag();
  if (scene.source().one_in(2) && !save_as(scene, tag)) return false;
  const int failures = scene.source().between(1, 4);
  for (int i = 0; i < failures; ++i) {
    const auto failure =
        scene.source().one_in(2) ? Save::Failure::disk_full : Save::Failure::cut_short;
    if (!scene.add_refused({Save{.engine = scene.engine(),
                                 .tag = tag,
                                 .failure = failure,
                                 .at = scene.source().between(0, 63)}}))
      return false;
  }
  return true;
}

bool failed_load(Scene& scene) {
  constexpr Load::Failure kFailures[] = {Load::Failure::damaged, Load::Failure::unreadable,
                                         Load::Failure::misfit, Load::Failure::missing};
  const Load::Failure failure = kFailures[scene.source().below(4)];
  const int at = scene.source().between(0, 63);
  std::string tag = "missing";
  if (failure != Load::Failure::missing) {
    const auto older = scene.source().one_in(2) ? saved_tag(scene, false) : std::nullopt;
    const bool is_latest = older && scene.state().latest.at(scene.engine()) == *older;
    const bool is_named =
        older && !older->empty() && (is_latest || failure != Load::Failure::damaged);
    tag = is_named ? *older : scene.new_tag();
    if (!is_named && !save_as(scene, tag)) return false;
  }
  return scene.add_refused(
      {Load{.engine = scene.engine(), .tag = tag, .failure = failure, .at = at}});
}

}  // namespace

std::span<const Production> checkpoint_productions() {
  constexpr std::uint32_t kSaves = tags(Tag::checkpoints);
  static constexpr Production kRows[] = {
      {"save", 4, kSaves, Position::aside, can_save, save},
      {"load", 4, kSaves, Position::aside, has_saved, load},
      {"load_away", 5, kSaves, Position::first_aside, can_save, load_away},
      {"save_tags", 3, kSaves, Position::first_aside, can_save, save_tags},
      {"recreate", 3, kSaves, Position::first_aside, can_save, recreate},
      {"recreate_older", 3, kSaves, Position::first_aside, has_saved, recreate_older, 2},
      {"resume_other_ranks", 3, kSaves | tags(Tag::worlds), Position::first_aside, can_resume,
       resume_other_ranks},
      {"resume_other_stage", 3, kSaves | tags(Tag::worlds), Position::first_aside, can_resume,
       resume_other_stage},
      {"save_in_context", 2, kSaves | tags(Tag::contexts), Position::aside, can_save_in_context,
       save_in_context},
      {"load_in_context", 2, kSaves | tags(Tag::contexts), Position::aside, can_save_in_context,
       load_in_context},
      {"checkpoint_in_block", 3, kSaves | tags(Tag::blocks), Position::training, can_save_in_block,
       checkpoint_in_block},
      {"save_in_forward", 2, kSaves, Position::training, can_save_in_pass, save_in_forward},
      {"failed_save", 3, kSaves | tags(Tag::misuse), Position::aside, can_save, failed_save},
      {"failed_load", 4, kSaves | tags(Tag::misuse), Position::aside, can_save, failed_load}};
  return kRows;
}

}  // namespace zeroproof::program
