// Context managers of a program, and function transforms.
#include <algorithm>
#include <limits>

#include "model/autocast/autocast.h"
#include "model/check.h"
#include "model/transforms/transforms.h"
#include "props/interpreter/interpreter.h"
#include "props/interpreter/program_count.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof::program {
namespace {

bool has_load(const Body& body) {
  return std::ranges::any_of(body, [](const Statement& statement) {
    return std::holds_alternative<Load>(statement.kind);
  });
}

}  // namespace

void Interpreter::execute(const Block& block) {
  const auto body = [&] { run(block.body); };
  switch (block.kind) {
    case Block::Kind::no_sync:
      return target_.no_sync(index_of(block.engine), body);
    case Block::Kind::coalesce:
      return target_.coalesce(index_of(block.engine), body);
    case Block::Kind::gathered:
      return gather(block);
    case Block::Kind::capture:
      if (!target_.capture(index_of(block.engine), body)) throw UsageError("capture is refused");
      return;
    case Block::Kind::autocast:
    case Block::Kind::other_autocast: {
      const Autocast region(target_.autograd(), DeviceType::cpu,
                            {.dtype = *autocast_dtype(block, program_.config)});
      return body();
    }
  }
}

TensorList Interpreter::parameters_of(const Block& block) {
  TreeModule& model = target_.model(index_of(block.engine));
  TensorList parameters;
  if (block.modules.empty())
    for (const nn::NamedParameter& named : model.named_parameters())
      parameters.push_back(named.tensor);
  for (const std::string& name : block.modules) {
    nn::Module* const module = model.module_of(name);
    ZP_CHECK(module, "a gathered module is one of its own");
    for (const nn::NamedParameter& named : module->named_parameters())
      parameters.push_back(named.tensor);
  }
  return parameters;
}

// Odd ranks name the parameters in another order, and one twice.
void Interpreter::gather(const Block& block) {
  const TensorList parameters = parameters_of(block);
  TensorList named = parameters;
  if (role() % 2 == 1 && !named.empty()) {
    std::ranges::reverse(named);
    named.push_back(named.front());
  }
  std::optional<int> modifier;
  if (block.modifier == Block::Modifier::first) modifier = 0;
  if (block.modifier == Block::Modifier::last) modifier = place_.ranks - 1;
  if (block.change == Block::Change::holds_nan) return gather_nan(block, named, parameters);
  target_.gathered(index_of(block.engine), named, modifier, [&] {
    const std::size_t before = seen_.size();
    change_weights(block, parameters);
    run(block.body);
    // What the modifying rank has changed comes to the others when the context ends.
    if (block.change != Block::Change::none) return leave_unspecified(before);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      see(Observed::value, "gathered " + std::to_string(i),
          target_.gathered_value(index_of(block.engine), parameters[i]));
    // A load partitions what the context has gathered; what it shows from then on is not said.
    if (has_load(block.body)) leave_unspecified(before);
  });
}

void Interpreter::leave_unspecified(std::size_t first) {
  for (std::size_t i = first; i < seen_.size(); ++i) seen_[i].is_unspecified = true;
}

// A NaN differs from itself although no rank has changed it.
void Interpreter::gather_nan(const Block& block, const TensorList& named,
                             const TensorList& parameters) {
  if (target_.is_reference()) return run(block.body);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t engine = index_of(block.engine);
  std::vector<std::vector<double>> before;
  target_.gathered(engine, named, 0, [&] {
    for (const Tensor& weight : parameters) {
      before.push_back(weight.values());
      write(weight, std::vector<double>(before.back().size(), kNan));
    }
  });
  target_.gathered(engine, named, std::nullopt, [&] { run(block.body); });
  target_.gathered(engine, named, 0, [&] {
    for (std::size_t i = 0; i < parameters.size(); ++i) write(parameters[i], before[i]);
  });
}

// In the middle of a backward as `weight.data` is written: the tensor's version does not see it.
void Interpreter::write(const Tensor& weight, const std::vector<double>& values) {
  const GradMode disabled(target_.autograd(), false);
  const std::uint32_t version = weight.impl().storage->version;
  target_.autograd().ops().copy_in_place(
      weight.detach(), Tensor::of(values, weight.sizes(), weight.dtype()).on(weight.device()));
  if (hooks_ != 0) weight.impl().storage->version = version;
}

void Interpreter::change_weights(const Block& block, const TensorList& parameters) {
  if (block.change == Block::Change::none || block.change == Block::Change::holds_nan) return;
  const int last = place_.ranks - 1;
  const int modifier = block.modifier == Block::Modifier::last ? last : 0;
  const bool is_partitioned = place_.stage == 3 && !target_.is_reference();
  const int rank = target_.rank();
  if (block.change == Block::Change::moves) {
    const Tensor& weight = parameters.front();
    const Device away = weight.device().is_cpu() ? Device::cuda(0) : Device::cpu();
    weight.set_data(weight.detach().on(away));
    return;
  }
  const int change = changes_++;
  const bool is_mine = block.change == Block::Change::unannounced ? rank == last : rank == modifier;
  const bool writes = !is_partitioned || is_mine || block.change == Block::Change::by_all;
  if (!writes) return;
  const bool is_lost = is_partitioned && !is_mine;
  for (const Tensor& weight : parameters) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < weight.numel(); ++i)
      values.push_back((is_lost ? 8.0 : 0.25) * static_cast<double>(1 + (i + change) % 4));
    write(weight, values);
  }
}

// The engine's loss as a function of the factors of its first use.
void Interpreter::execute(const Transform& transform) {
  Autograd& ag = target_.autograd();
  const std::size_t engine = index_of(transform.engine);
  const TensorList inputs = next_inputs(transform.engine);
  target_.model(engine).arm(std::make_shared<ForwardPlan>());
  const func::Function loss = [&](const TensorList& given) {
    const std::size_t first = program_.model_of(transform.engine).has_constant_output ? 1 : 0;
    return TensorList{target_.forward(engine, given).at(first)};
  };
  if (transform.kind == Transform::Kind::grad)
    return see(Observed::value, "func.grad", func::grad(ag, loss, {1})(inputs).at(0));
  const Tensor examples = stack(ag, {inputs.at(1), mul(ag, inputs.at(1), 2.0)}, 0);
  const auto with = [&](const func::Function& f) -> func::Function {
    return [&inputs, f](const TensorList& one) {
      TensorList given = inputs;
      given.at(1) = one.at(0);
      return f(given);
    };
  };
  if (transform.kind == Transform::Kind::vmap)
    return see(Observed::value, "func.vmap",
               func::vmap(ag, with(func::grad(ag, loss, {1})))({examples}).at(0));
  const func::Function losses = func::vmap(ag, with(loss));
  const func::Function total = [&](const TensorList& batch) {
    return TensorList{sum(ag, losses(batch).at(0))};
  };
  see(Observed::value, "func.grad of vmap", func::grad(ag, total)({examples}).at(0));
}

}  // namespace zeroproof::program
