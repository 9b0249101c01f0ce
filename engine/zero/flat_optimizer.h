#pragma once

#include <deque>
#include <string_view>
#include <vector>

#include "engine/zero/flat_group.h"
#include "engine/zero/zero_optimizer.h"

namespace zeroproof {

// What stages 0 to 2 have in common: flat groups, the sums of each window, and the step. The
// stages differ in how gradients get into the windows.
class FlatOptimizer : public ZeroOptimizer {
 public:
  StepOutcome step() override;
  void set_rates(const std::vector<GroupRates>& groups) override;
  void count_replayed_step() override;
  void zero_grad() override;
  void collect_gradients() override;
  void visit_state(StateVisitor& visitor) const override;
  std::vector<GradientSlice> gradient_slices() const override;

  std::vector<FullTensor> full_gradients() override;
  std::vector<FullTensor> full_parameters() override;
  std::vector<FullTensor> full_optimizer_state() override;
  void load(const std::vector<FullTensor>& parameters,
            const std::vector<FullTensor>& states) override;

 protected:
  struct Slot {
    FlatGroup* group = nullptr;  // null: frozen
    std::size_t index = 0;       // in the group
  };

  // `ranks` share each group; this one is `rank` of them.
  FlatOptimizer(ZeroContext& context, int ranks, int rank);

  // The norm of the whole gradient, and whether any of it is not finite: as many ranks as share it
  // decide together.
  virtual double norm() = 0;
  virtual Tensor squares() = 0;  // of that norm, on the device
  virtual bool overflows() = 0;
  virtual void drop_gradients();  // everything of the window
  virtual void gather_parameters() {}
  // The update of every group, and all ranks have its values.
  virtual void update_parameters(const GradientDivisor& divisor);
  // What the update reads: the window, or what a quirk has in its place.
  virtual Span step_gradient(FlatGroup& group) { return group.add_to_accumulator(); }

  std::vector<Span> grad_accumulators();
  const Slot& slot(const ZeroParameter& parameter) const {
    return slots_[static_cast<std::size_t>(parameter.id.value)];
  }
  Tensor& accumulated(const ZeroParameter& parameter) {
    return accumulated_[static_cast<std::size_t>(parameter.id.value)];
  }
  void clear_grads();

  ZeroContext& context_;
  std::deque<FlatGroup> groups_;

 private:
  void begin_sums();
  Tensor* begin_sum(ZeroParameter& parameter);
  std::vector<double> whole(const FlatGroup& group, const Tensor& slice) const;
  template <class SliceOf>
  std::vector<FullTensor> full(const char* suffix, SliceOf slice_of);
  void load_slice(FlatGroup& group, const Tensor& slice, const char* suffix,
                  const std::vector<FullTensor>& values) const;

  std::vector<Slot> slots_;  // by ParamId
  TensorList accumulated_;   // by ParamId: local sums that are not reduced yet
};

}  // namespace zeroproof
