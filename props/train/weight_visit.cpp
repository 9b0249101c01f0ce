#include "props/train/weight_visit.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "props/train/engine_target.h"
#include "props/train/generated_model.h"
#include "props/train/misuse.h"
#include "props/train/window_records.h"

namespace zeroproof::train {
namespace {

class WeightVisit {
 public:
  WeightVisit(const CaseSpec& spec, Pass& pass)
      : spec_(spec), pass_(pass), engines_(dynamic_cast<EngineTarget*>(&pass.target())) {}

  void run(Gathers gathers) {
    std::vector<nn::NamedParameter> named = all();
    const auto look = [&] { look_at(named, gathers == Gathers::looks_rounded && !engines_); };
    switch (gathers) {
      case Gathers::first_changes:
        return change(named, 0);
      case Gathers::last_changes:
        return change(named, spec_.ranks - 1);
      case Gathers::breaks:
        return catch_injected([&] {
          in_context(named, std::nullopt, [&] {
            look();
            throw Injected("injected where weights are gathered");
          });
        });
      case Gathers::discards:
        return catch_injected([&] { discard_change(named); });
      case Gathers::unannounced:
        return change_unannounced(named);
      case Gathers::holds_none:
        return look_at_none(named);
      case Gathers::nested:
        return look_in_nested(named);
      default:
        return in_context(named, std::nullopt, look);
    }
  }

  void run_inside(bool changes, const std::function<void()>& forward) {
    const std::vector<nn::NamedParameter> named = all();
    in_context(named, changes ? std::optional<int>(0) : std::nullopt, [&] {
      for (const nn::NamedParameter& parameter : named)
        if (changes) set_all(parameter.tensor);
      forward();
      look_at(named);
    });
  }

  WeightValues change_data() {
    const bool changes = is_changer();
    WeightValues before;
    const std::vector<nn::NamedParameter> named = all();
    in_context(named, 0, [&] {
      for (const nn::NamedParameter& parameter : named) {
        before.push_back(parameter.tensor.values());
        if (changes) past_autograd(parameter.tensor, [&] { set_all(parameter.tensor); });
      }
    });
    return before;
  }

  void set_back(const WeightValues& values) {
    const bool changes = is_changer();
    const std::vector<nn::NamedParameter> named = all();
    in_context(named, 0, [&] {
      look_at(named);
      for (std::size_t i = 0; changes && i < named.size(); ++i)
        past_autograd(named[i].tensor, [&] { set(named[i].tensor, values[i]); });
    });
  }

  void run_around(int spans, const std::function<void()>& backward) {
    const std::vector<nn::NamedParameter> named = all();
    in_context(named, spans == 2 ? std::optional<int>(0) : std::nullopt, [&] {
      backward();
      look_at(named);
    });
  }

  void rewrite() {
    const std::vector<nn::NamedParameter> named = all();
    in_context(named, 0, [&] {
      for (const nn::NamedParameter& parameter : named)
        set(parameter.tensor, parameter.tensor.values());
    });
  }

 private:
  // Whose changes all take over, or everybody for himself.
  bool is_changer() const { return !engines_ || spec_.stage != 3 || pass_.target().rank() == 0; }

  std::vector<nn::NamedParameter> all() { return pass_.target().module(0).named_parameters(); }

  // `is_rounded`: as what autocast covers travels.
  void look_at(const std::vector<nn::NamedParameter>& named, bool is_rounded = false) {
    for (const nn::NamedParameter& parameter : named) {
      const bool is_covered = parameter.name.find("linear.") != std::string::npos;
      Tensor seen = parameter.tensor;
      const DType wire = spec_.has_grad_scaler != 0 ? DType::float16 : DType::bfloat16;
      if (is_rounded && is_covered && spec_.is_unsafe == 0)
        seen = Tensor::of(seen.values(), seen.sizes(), wire);
      pass_.target().record("weight " + parameter.name, seen);
      record_number(pass_, "dtype of " + parameter.name,
                    static_cast<double>(item_bytes(parameter.tensor.dtype())));
    }
  }

  // The version of a tensor does not see what happens to its data.
  static void past_autograd(const Tensor& weight, const std::function<void()>& write) {
    const std::uint32_t version = weight.impl().storage->version;
    write();
    weight.impl().storage->version = version;
  }

  void in_context(const std::vector<nn::NamedParameter>& named, std::optional<int> modifier,
                  const std::function<void()>& body) {
    if (!engines_ || spec_.stage != 3) return body();
    TensorList list;
    for (const nn::NamedParameter& parameter : named) list.push_back(parameter.tensor);
    if (pass_.target().rank() % 2 == 1 && !list.empty()) {
      std::ranges::reverse(list);
      list.push_back(list.front());
    }
    engines_->engine(0).gathered_parameters(list, modifier, body);
  }

  void discard_change(const std::vector<nn::NamedParameter>& named) {
    if (!engines_) return;
    in_context(named, 0, [&] {
      for (const nn::NamedParameter& parameter : named)
        set_all(parameter.tensor, 8.0 * (1 + pass_.target().rank()));
      throw Injected("injected behind a change of weights");
    });
  }

  // Where weights are whole everywhere, every rank does it for itself.
  void change(const std::vector<nn::NamedParameter>& named, int modifier) {
    const bool is_alone = engines_ && spec_.stage == 3;
    in_context(named, modifier, [&] {
      if (is_alone && pass_.target().rank() != modifier) return;
      for (const nn::NamedParameter& parameter : named) set_all(parameter.tensor);
    });
  }

  // Another value for each window and element.
  void set_all(const Tensor& weight, double factor = 0.25) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < weight.numel(); ++i)
      values.push_back(factor * static_cast<double>(1 + (i + pass_.step_number()) % 4));
    set(weight, values);
  }

  void set(const Tensor& weight, const std::vector<double>& values) {
    const GradMode disabled(pass_.autograd(), false);
    pass_.autograd().ops().copy_in_place(weight.detach(),
                                         Tensor::of(values, weight.sizes(), weight.dtype()));
  }

  // The same values in another order, where there is one; whether there is.
  bool turn_round(const std::vector<nn::NamedParameter>& named) {
    bool has_changed = false;
    for (const nn::NamedParameter& parameter : named) {
      const std::vector<double> before = parameter.tensor.values();
      const std::vector<double> after(before.rbegin(), before.rend());
      has_changed = has_changed || after != before;
      set(parameter.tensor, after);
    }
    return has_changed;
  }

  // Every rank is told, and nothing has changed.
  void change_unannounced(const std::vector<nn::NamedParameter>& named) {
    const bool changes = pass_.target().rank() == spec_.ranks - 1;
    const bool is_refused =
        !engines_ || is_refused_with(EngineErrorId::modified_without_modifier_rank, [&] {
          in_context(named, std::nullopt, [&] {
            if (changes && (pass_.step_number() % 2 == 0 || !turn_round(named)))
              for (const nn::NamedParameter& parameter : named) set_all(parameter.tensor, 8.0);
          });
        });
    record_number(pass_, "a change is refused", is_refused ? 1.0 : 0.0);
  }

  // What is no number equals nothing, and nobody has changed it.
  void look_at_none(const std::vector<nn::NamedParameter>& named) {
    if (!engines_) return;
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    std::vector<std::vector<double>> before;
    in_context(named, 0, [&] {
      for (const nn::NamedParameter& parameter : named) {
        before.push_back(parameter.tensor.values());
        set(parameter.tensor, std::vector<double>(before.back().size(), kNone));
      }
    });
    in_context(named, std::nullopt, [] {});
    in_context(named, 0, [&] {
      for (std::size_t i = 0; i < named.size(); ++i) set(named[i].tensor, before[i]);
    });
  }

  void look_in_nested(const std::vector<nn::NamedParameter>& named) {
    const auto middle = named.begin() + std::ssize(named) / 2;
    const std::vector<nn::NamedParameter> inner(named.begin(), middle);
    const std::vector<nn::NamedParameter> outer(middle, named.end());
    bool is_refused = !engines_ || spec_.stage != 3;
    in_context(outer, std::nullopt, [&] {
      in_context(inner, std::nullopt, [&] { look_at(inner); });
      const std::int64_t whole = whole_elements(pass_);
      if (!is_refused)
        is_refused = is_refused_with(EngineErrorId::gather_contexts_overlap,
                                     [&] { in_context(named, std::nullopt, [] {}); });
      is_refused = is_refused && whole_elements(pass_) == whole;
      look_at(outer);
    });
    record_number(pass_, "an overlapping context is refused", is_refused ? 1.0 : 0.0);
  }

  static void catch_injected(const std::function<void()>& call) {
    try {
      call();
    } catch (const Injected&) {
    }
  }

  const CaseSpec& spec_;
  Pass& pass_;
  EngineTarget* engines_;  // null: the baseline
};

}  // namespace

void visit_weights(const CaseSpec& spec, Pass& pass, Gathers gathers) {
  if (gathers != Gathers::none) WeightVisit(spec, pass).run(gathers);
}

void visit_with_forward(const CaseSpec& spec, Pass& pass, Gathers gathers,
                        const std::function<void()>& run) {
  WeightVisit(spec, pass).run_inside(gathers == Gathers::changes_and_runs, run);
}

void visit_with_backward(const CaseSpec& spec, Pass& pass, int spans,
                         const std::function<void()>& backward) {
  WeightVisit(spec, pass).run_around(spans, backward);
}

WeightValues change_data(const CaseSpec& spec, Pass& pass) {
  return WeightVisit(spec, pass).change_data();
}

void set_back(const CaseSpec& spec, Pass& pass, const WeightValues& values) {
  WeightVisit(spec, pass).set_back(values);
}

void rewrite_weights(const CaseSpec& spec, Pass& pass) {
  WeightVisit(spec, pass).rewrite();
}

void with_whole_weights(const CaseSpec& spec, Pass& pass, const TensorList& weights,
                        const std::function<void()>& body) {
  auto* const engines = dynamic_cast<EngineTarget*>(&pass.target());
  if (!engines || spec.stage != 3) return body();
  engines->engine(0).gathered_parameters(weights, std::nullopt, body);
}

void evaluate_guards(Pass& pass) {
  const std::int64_t before = whole_elements(pass);
  if (auto* const engines = dynamic_cast<EngineTarget*>(&pass.target())) {
    engines->engine(0).set_guard_evaluation(true);
    for (const nn::NamedModule& module : engines->module(0).named_modules())
      for (Tensor* parameter : module.module->own_parameters())
        (void)module.module->read(*parameter);
    engines->engine(0).set_guard_evaluation(false);
  }
  const auto more = static_cast<double>(whole_elements(pass) - before);
  record_number(pass, "elements that guards gather", more);
}

namespace {

std::int64_t whole_elements_below(Pass& pass, const std::string& prefix) {
  std::int64_t elements = 0;
  if (!dynamic_cast<EngineTarget*>(&pass.target())) return elements;
  for (const nn::NamedParameter& parameter : pass.target().module(0).named_parameters())
    if (parameter.name.starts_with(prefix)) elements += parameter.tensor.numel();
  return elements;
}

}  // namespace

std::int64_t whole_elements(Pass& pass) {
  return whole_elements_below(pass, "");
}

std::int64_t whole_elements_of_call(const CaseSpec& spec, Pass& pass, int call) {
  const int layer = spec.calls.at(static_cast<std::size_t>(call)).layer;
  return whole_elements_below(pass, "l" + std::to_string(layer) + ".");
}

std::int64_t elements_to_give_up(const CaseSpec& spec, std::int64_t whole) {
  if (spec.stage != 3 || spec.returns != 0) return 0;
  const std::int64_t persistent = persistent_bytes(spec) / item_bytes(DType::float32);
  return std::max<std::int64_t>(whole - persistent, 0);
}

}  // namespace zeroproof::train
