// Windows, micro-batches, and what a case's productions do in them.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "model/check.h"
#include "props/program/draw.h"
#include "props/program/scene.h"

namespace zeroproof::program {
namespace {

constexpr int kMicrosMost = 6;           // of a window whose user moves its boundary
constexpr std::uint32_t kOfChosen = 12;  // the weight of a chosen row among all of a case's tags

class BodyDraw {
 public:
  BodyDraw(Source& source, const Policy& policy, Program& program, Typestate start)
      : source_(source), policy_(policy), scene_(program, source, policy, std::move(start)) {}

  std::vector<const Production*> run() {
    constexpr std::array<std::uint32_t, 4> kEach = {2, 4, 4, 1};
    auto windows = 1 + static_cast<int>(source_.weighted(kEach));
    // A loss scale moves after some steps.
    if (policy_.has(Tag::loss_scaling)) windows += source_.between(0, 2);
    for (int i = 0; i < windows; ++i) draw_window();
    return std::move(made_);
  }

 private:
  // --- which production ------------------------------------------------------------------

  std::uint32_t weight_of(std::size_t row, Position position) const {
    const Production& production = grammar()[row];
    if (production.position != position || !policy_.can_draw(row) || !production.enabled(scene_))
      return 0;
    const bool is_chosen = std::ranges::find(policy_.rows, row) != policy_.rows.end();
    if (!policy_.is_plain) {
      const bool is_tagged = (production.tags & policy_.tags) != 0;
      return is_chosen ? kOfChosen : is_tagged ? production.weight : 0;
    }
    if (is_chosen) return 3;
    return row == 0 ? 2 : 0;
  }

  // Index 0: no production.
  std::vector<std::uint32_t> weights_of(Position position) const {
    std::vector<std::uint32_t> weights = {0};
    std::uint32_t sum = 0;
    for (std::size_t row = 0; row < grammar().size(); ++row) {
      weights.push_back(weight_of(row, position));
      sum += weights.back();
    }
    // A place has one now and then, and a case of few productions has them more often.
    weights.front() = policy_.is_plain ? 3 : std::max(sum, std::uint32_t{1});
    return weights;
  }

  bool make(std::size_t row) {
    const Production& production = grammar()[row];
    const Source::Scope scope(source_, production.name);
    if (!scene_.attempt([&] { return production.make(scene_); })) return false;
    made_.push_back(&production);
    return true;
  }

  // --- where -------------------------------------------------------------------------------

  void draw_asides(Position position) {
    for (const std::string& engine : scene_.engines())
      for (std::uint32_t i = 0; i < policy_.asides; ++i)
        if (!draw_aside(engine, position)) break;
  }

  bool draw_aside(const std::string& engine, Position position) {
    const Source::Scope scope(source_, "between_trainings");
    const std::size_t index = source_.weighted(weights_for(engine, position));
    if (index > 0) make(index - 1);
    return index > 0;
  }

  std::vector<std::uint32_t> weights_for(const std::string& engine, Position position) {
    scene_.choose_engine(engine);
    return weights_of(position);
  }

  void train(const std::string& engine) {
    const Source::Scope scope(source_, "training");
    std::vector<std::uint32_t> weights = weights_for(engine, Position::training);
    weights.erase(weights.begin());  // the first row is plain training
    if (!policy_.is_plain) weights.front() = plain_share(weights);
    const std::size_t row = source_.weighted(weights);
    if (!make(row) && row != 0) make(0);
  }

  // As often as all other rows, however many of them the case has.
  static std::uint32_t plain_share(const std::vector<std::uint32_t>& weights) {
    const std::uint32_t sum = std::accumulate(weights.begin() + 1, weights.end(), 0U);
    return std::max(sum, 1U);
  }

  // What a step lacks comes, or goes.
  void step(const std::string& engine) {
    scene_.choose_engine(engine);
    const Step step{.engine = engine};
    if (scene_.add({step})) return;
    if (scene_.add_refused({step})) {
      if (scene_.attempt([&] { return scene_.train() && scene_.add({step}); })) return;
    }
    if (scene_.add({ZeroGrad{.engine = engine}})) scene_.add({step});
  }

  void inspect_step() {
    if (!policy_.inspects) return;
    for (const std::string& engine : scene_.engines()) {
      scene_.add({Inspect{.engine = engine, .what = Inspect::What::masters}});
      scene_.add({Inspect{.engine = engine, .what = Inspect::What::optimizer_state}});
    }
  }

  void draw_micro(bool is_first) {
    const Source::Scope scope(source_, "micro");
    if (is_first) draw_asides(Position::first_aside);
    draw_asides(Position::aside);
    for (const std::string& engine : scene_.engines())
      if (!scene_.take_trained(engine)) train(engine);
    draw_asides(Position::before_step);
    for (const std::string& engine : scene_.engines()) step(engine);
  }

  void draw_window() {
    const Source::Scope scope(source_, "window");
    const auto steps = static_cast<int>(scene_.config().gradient_accumulation_steps);
    const bool is_managed = scene_.is_managed_accumulation();
    for (int micro = 0; micro < kMicrosMost; ++micro) {
      const std::int64_t weights = first_engine().weights;
      draw_micro(micro == 0);
      const bool has_ended = is_managed ? first_engine().weights != weights : micro + 1 >= steps;
      if (has_ended) break;
    }
    inspect_step();
  }

  const EngineState& first_engine() const {
    return scene_.state().engines.at(scene_.program().engines.front().name);
  }

  Source& source_;
  const Policy& policy_;
  Scene scene_;
  std::vector<const Production*> made_;
};

}  // namespace

std::vector<const Production*> draw_body(Source& source, const Policy& policy, Program& program) {
  auto start = Typestate::of(program);
  ZP_CHECK(start, "the head of a drawn program makes sense");
  return BodyDraw(source, policy, program, std::move(*start)).run();
}

}  // namespace zeroproof::program
