#pragma once

#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/engine_target.h"
#include "props/train/run_watch.h"

namespace zeroproof::train {

// Levels at which a function transform can start; conditions that explorations have to reach.
inline constexpr std::string_view kTransformInForward = "transform_in_forward";
inline constexpr std::string_view kTransformInRecompute = "transform_in_recompute";
inline constexpr std::string_view kTransformInPreUserBackward = "transform_in_pre_user_backward";
inline constexpr std::string_view kTransformBetweenEngines = "transform_between_engines";

// Sees where the transforms of a run start: inside a forward of an engine; in a recompute; in a
// backward that a forward started; and between gradient hooks of two engines in one backward.
class TransformWatch final : public RunWatch {
 public:
  explicit TransformWatch(int ranks);

  std::vector<RankObservers> observers() override { return {}; }
  void attach(std::size_t rank, EngineTarget::Options& options) override;

  // By any rank, in this run.
  std::set<std::string> reached() const;

 private:
  class Rank final : public ModelObserver, public AutogradObserver {
   public:
    void on_model(Autograd& autograd, nn::Module& module, const std::string& prefix) override;
    TensorList run_checkpoint(std::string_view label,
                              const std::function<TensorList()>& body) override;
    void on_function(EventKind, std::string_view) override {}
    const std::set<std::string_view>& reached() const { return reached_; }

   private:
    struct Backward {
      bool is_in_forward = false;
      std::set<std::string> hooked;  // engines whose hooks it has run, by prefix
      std::set<std::string> hooked_before_transform;
    };
    void on_backward_begin(const BackwardCall& call) override;
    void on_backward_end(std::exception_ptr error) override;
    void on_transform_push(const TransformFrame& frame) override;
    void on_gradient(const std::string& engine);

    int forwards_ = 0;  // of engines, under way
    int recomputes_ = 0;
    std::vector<Backward> backwards_;  // under way
    std::set<std::string_view> reached_;
  };

  std::deque<Rank> ranks_;
};

}  // namespace zeroproof::train
