#include "props/train/case_saves.h"

#include <algorithm>
#include <array>
#include <limits>

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kSaveStream = 0x7361766573ULL;
constexpr int kDrawnDamages = 1000;
constexpr std::array kWrongScales = {0.0, -2.0, std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};

void draw_refusals(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.restores =
        draws.between(static_cast<int>(Restores::saved), static_cast<int>(Restores::outdated));
    micro.damages = draws.below(kDrawnDamages);
  }
}

// What one window has saved another one cannot load, under a loss scale that moves meanwhile.
void load_outdated(CaseSpec& spec, Draws& draws) {
  move_loss_scale(spec, draws, 3);
  spec.ranks = std::max(spec.ranks, 2);
  overflow_in(spec, draws, static_cast<std::size_t>(draws.between(0, 2)));
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    if (!is_first(spec, i)) continue;
    spec.micros[i].restores = static_cast<int>(i == 0 ? Restores::saved : Restores::outdated);
    spec.micros[i].damages = i == 0 ? 0 : draws.below(kDrawnDamages);
  }
}

// What is loaded away has a loss scale of its own.
void load_own_scales(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.owns_scale = 1;
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (is_first(spec, i)) load_away(spec.micros[i], draws);
}

void ask_wrong_scales(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (is_first(spec, i)) spec.micros[i].misscales = draws.below(5);
}

// An earlier micro-batch leaves a checkpoint that is whole.
bool has_saved(const CaseSpec& spec, std::size_t micro) {
  return std::any_of(spec.micros.begin(), spec.micros.begin() + static_cast<std::ptrdiff_t>(micro),
                     [](const MicroSpec& before) {
                       const auto restores = static_cast<Restores>(before.restores);
                       return restores == Restores::saved || restores == Restores::full_disk ||
                              restores == Restores::unreadable;
                     });
}

}  // namespace

Additions save_additions() {
  static constexpr Addition kSaves[] = {
      {2, draw_refusals}, {4, load_own_scales}, {4, ask_wrong_scales}, {4, load_outdated}};
  return {kSaveStream, 4, kSaves};
}

std::string save_problem(const CaseSpec& spec) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    const MicroSpec& micro = spec.micros[i];
    if (micro.damages < 0 || micro.damages >= kDrawnDamages || micro.misscales < 0 ||
        micro.misscales > static_cast<int>(kWrongScales.size()))
      return "a number out of range";
    if (micro.misscales != 0 && !is_first(spec, i)) return "a loss scale inside a window";
    if (static_cast<Restores>(micro.restores) == Restores::outdated && !has_saved(spec, i))
      return "a load of what nobody has saved";
  }
  return {};
}

double wrong_loss_scale(int k) {
  return kWrongScales.at(static_cast<std::size_t>(k) - 1);
}

}  // namespace zeroproof::train
