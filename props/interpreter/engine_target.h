#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/training_state.h"
#include "props/interpreter/rank_files.h"
#include "props/interpreter/short_memory.h"
#include "props/interpreter/target.h"
#include "props/train/engine_target.h"
#include "props/train/subject.h"
#include "zeroproof/engine/engine.h"

namespace zeroproof::program {

// How the engines of a run differ from plain ones. Plain data.
struct EngineVariant {
  std::string policy = "exact";
  Quirks quirks = {};
  const train::Subject* subject = nullptr;  // null: plain engines; must outlive the run
  std::optional<World::Autograd> autograd = std::nullopt;  // in place of the program's
  FallbackRule fallback_rule = FallbackRule::per_graph;
};

// Our engines on one rank of a world.
class EngineTarget final : public Target {
 public:
  struct Options {
    bool observes = true;                    // values around steps; those calls are collective
    train::ModelObserver* models = nullptr;  // must outlive it; null for none
    AutogradObserver* autograd = nullptr;    // the same
    Chooser* order = nullptr;                // of nodes, where several may run next
    FileSystem* files = nullptr;             // where checkpoints are; of all ranks
    Device device = Device::cpu();           // of parameters and inputs
  };

  // All must outlive it. Throws train::ConfigurationRefused.
  EngineTarget(const Program& program, const ZeroConfig& config, const EngineVariant& variant,
               const DataPlan& data, Runtime& runtime, const Options& options);

  Autograd& autograd() override { return autograd_; }
  int rank() const override { return runtime().group(GroupKind::data).rank(); }
  bool stands_for(int world_rank) const override { return runtime().rank() == world_rank; }
  bool is_reference() const override { return false; }
  Device device() const override { return options_.device; }
  TreeModule& model(std::size_t engine) override { return *modules_[engine]; }

  TensorList forward(std::size_t engine, const TensorList& inputs) override;
  Tensor backward(std::size_t engine, const std::vector<std::size_t>& engines, const Tensor& loss,
                  const BackwardArguments& arguments) override;
  void tensor_backward(const std::vector<std::size_t>& engines, const Tensor& root,
                       const Tensor& grad, const BackwardArguments& arguments) override;
  Tensor scale(std::size_t engine, const Tensor& loss) override;
  bool step(std::size_t engine, Observations& seen) override;
  void zero_grad(std::size_t engine) override;
  void set_boundary(std::size_t engine, bool is_boundary) override;
  bool set_loss_scale(std::size_t engine, double loss_scale) override;
  bool set_learning_rate(std::size_t engine, std::optional<std::size_t> group,
                         double learning_rate) override;
  void no_sync(std::size_t engine, const Call& body) override;
  void coalesce(std::size_t engine, const Call& body) override;
  void gathered(std::size_t engine, const TensorList& parameters, std::optional<int> modifier,
                const Call& body) override;
  bool capture(std::size_t engine, const Call& body) override;
  void with_short_memory(int allocation, const Call& body, const Call& rewind) override;
  void save(std::size_t engine, const Save& save, Observations& seen) override;
  void load(std::size_t engine, const Load& load, Observations& seen) override;
  void recreate(std::size_t engine) override;
  void inspect(std::size_t engine, Inspect::What what, Observations& seen) override;
  void register_external(std::size_t engine, const std::string& module) override;
  void set_leaf(std::size_t engine, const std::string& module) override;
  void evaluate_guards(std::size_t engine) override;
  void release_gathered(std::size_t engine) override;
  bool make_temporary(std::size_t engine) override;
  std::optional<std::string> try_config(const TryConfig& tried) override;

  // Every engine goes on from what was saved under the tag.
  void load_resumed(const std::string& tag);

 private:
  // What engines take of a rank.
  struct Footprint {
    std::int64_t device_bytes = 0;
    std::int64_t host_bytes = 0;
    bool has_linear = false;
    friend bool operator==(const Footprint&, const Footprint&) = default;
  };

  Runtime& runtime() const { return short_; }
  std::unique_ptr<TreeModule> new_module(std::size_t engine, std::size_t seed_of);
  EngineOptions options_of(std::size_t engine, TreeModule& module) const;
  Result<ZeroConfig> config_of(std::size_t engine) const;
  void make(std::size_t engine);
  void name_parts(std::size_t engine);
  Footprint footprint();
  std::vector<FullTensor> weights(std::size_t engine);
  std::string folder(std::size_t engine) const;
  std::string misfit_folder(std::size_t engine) const;
  bool is_first_rank() const;
  Result<void> save_tag(std::size_t engine, const std::string& tag);
  Result<void> load_tag(std::size_t engine, const std::string& tag);
  struct Kept {
    std::optional<TrainingState> tagged;
    std::optional<TrainingState> latest;
  };
  Kept kept_by_files(std::size_t engine, const std::string& tag) const;
  void see_files(std::size_t engine, Observations& seen);
  void see_left_gradients(std::size_t engine, Observations& seen);
  void see_counters(std::size_t engine, Observations& seen);
  void see_saved(std::size_t engine, const std::string& tag, Observations& seen);
  std::string prepare_failure(std::size_t engine, const Load& load);
  void save_misfit(std::size_t engine, const Load& load);
  void age_scaler(std::size_t engine);

  const Program& program_;
  const ZeroConfig& config_;
  const EngineVariant& variant_;
  const DataPlan& data_;
  mutable ShortRuntime short_;
  Options options_;
  Autograd autograd_;
  RankFiles files_;
  std::map<std::size_t, std::string> newest_;  // tag that an engine saved last
  // Of each engine's last whole save, those that leave the earlier checkpoints if they fail.
  std::map<std::size_t, int> writes_of_save_;
  std::vector<int> contexts_;  // of each engine, that gather, around what runs
  std::vector<std::unique_ptr<TreeModule>> modules_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace zeroproof::program
