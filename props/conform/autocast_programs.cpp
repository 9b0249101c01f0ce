// Programs under autocast regions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>

#include "model/accumulate_grad.h"
#include "model/autocast/autocast.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr AutocastOptions kBfloat16 = {.dtype = DType::bfloat16};

void autocast(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor x = c.input();
  Tensor y;
  {
    const Autocast region(ag, c.device().type(), kBfloat16);
    y = l2(ag, tanh(ag, l1(ag, x)));
  }
  ag.backward(sq(ag, to(ag, y, DType::float32)));
  c.mark(fmt::format("grad_dtype:torch.{}", dtype_name(l1.weight.grad().dtype())));
}

bool is_cast_of_leaf(const Node& node) {
  if (!node.name().starts_with("ToCopyBackward")) return false;
  for (const Edge& edge : node.next_edges())
    if (edge.is_valid() && dynamic_cast<const AccumulateGrad*>(edge.node.get())) return true;
  return false;
}

std::size_t count_casts_of_leaves(const Tensor& loss) {
  std::set<const Node*> seen;
  std::vector<const Node*> open = {loss.grad_fn().get()};
  std::size_t casts = 0;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    if (is_cast_of_leaf(*node)) ++casts;
    for (const Edge& edge : node->next_edges())
      if (edge.is_valid()) open.push_back(edge.node.get());
  }
  return casts;
}

void autocast_cache(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l = c.linear("l");
  const Tensor x = c.input();
  for (const bool has_cache : {true, false}) {
    Tensor y;
    {
      const Autocast region(ag, c.device().type(),
                            {.dtype = DType::bfloat16, .is_cache_enabled = has_cache});
      y = l(ag, tanh(ag, l(ag, x)));
    }
    const Tensor loss = sq(ag, to(ag, y, DType::float32));
    const std::size_t casts = count_casts_of_leaves(loss);
    ag.backward(loss);
    c.mark(fmt::format("cast_nodes:{}", casts));
  }
}

// Both variants in a region; the recompute enters it again (rule M3).
void autocast_checkpoint(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor x = c.leaf_input("x");
  for (const auto& [label, kind] :
       {std::pair("R", CheckpointKind::reentrant), std::pair("N", CheckpointKind::non_reentrant)}) {
    std::vector<std::string_view> dtypes;
    const auto body = [&](const Tensor& input) {
      const Tensor h = l1(ag, input);
      dtypes.push_back(dtype_name(h.dtype()));
      return tanh(ag, h);
    };
    Tensor y;
    {
      const Autocast region(ag, c.device().type(), kBfloat16);
      y = l2(ag, c.ckpt(label, kind, body, x));
    }
    ag.backward(sq(ag, to(ag, y, DType::float32)));
    c.mark(fmt::format("{}:{}", label, fmt::join(dtypes, ",")));
  }
}

constexpr std::array kAutocastPrograms = {
    ConformProgram{"P69_autocast", autocast},
    ConformProgram{"P70_autocast_cache", autocast_cache},
    ConformProgram{"P71_autocast_ckpt", autocast_checkpoint},
};

}  // namespace

std::span<const ConformProgram> autocast_programs() {
  return kAutocastPrograms;
}

}  // namespace zeroproof
