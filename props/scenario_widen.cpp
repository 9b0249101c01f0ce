#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "model/check.h"
#include "props/scenario.h"

namespace zeroproof {
namespace {

// New names of every parameter, latest layer first: with factor 2, p4 becomes p8, p7. The number
// at the end of a name counts layers, so it is scaled.
std::vector<std::string> widened_names(const std::string& param, std::uint32_t factor) {
  const std::size_t digits = param.find_last_not_of("0123456789") + 1;
  const bool is_numbered = digits < param.size() && param.size() - digits <= 6;
  std::vector<std::string> names;
  for (std::uint32_t copy = 0; copy < factor; ++copy) {
    if (is_numbered) {
      const auto number = static_cast<std::uint32_t>(std::stoul(param.substr(digits)));
      names.push_back(fmt::format("{}{}", param.substr(0, digits), number * factor - copy));
    } else {
      names.push_back(fmt::format("{}.{}", param, factor - copy));
    }
  }
  return names;
}

// Rebuilds one graph with every layer (an op and the leaf below it) copied into a chain.
class TaskWidener {
 public:
  TaskWidener(const GraphTaskProgram& task, std::uint32_t factor) : task_(task), factor_(factor) {}

  GraphTaskProgram widen() {
    for (std::size_t node = 0; node < task_.nodes.size(); ++node) add_copies(node);
    for (std::size_t node = 0; node < task_.nodes.size(); ++node) connect(node);
    return std::move(result_);
  }

 private:
  bool is_leaf(std::size_t node) const { return task_.nodes[node].kind == NodeKind::accumulate; }

  bool is_layer(std::size_t node) const {
    if (task_.nodes[node].kind != NodeKind::op) return false;
    for (const std::size_t next : task_.nodes[node].next) {
      if (is_leaf(next)) return true;
    }
    return false;
  }

  void add_copies(std::size_t node) {
    const ProtocolNode& original = task_.nodes[node];
    const bool is_copied = is_leaf(node) || is_layer(node);
    const std::vector<std::string> params =
        is_leaf(node) ? widened_names(original.param, factor_) : std::vector<std::string>();
    const std::vector<std::string> ids =
        is_copied ? widened_names(original.id, factor_) : std::vector<std::string>{original.id};
    for (std::uint32_t copy = 0; copy < ids.size(); ++copy) {
      ProtocolNode added = original;
      added.next.clear();
      added.id = ids[copy];
      if (is_leaf(node)) added.param = params[copy];
      added.sequence_nr = (original.sequence_nr + 1) * factor_ - 1 - copy;
      copies_[node].push_back(result_.nodes.size());
      result_.nodes.push_back(std::move(added));
    }
    result_.id = task_.id;
  }

  // The copies of a layer form a chain in the place of the layer: each keeps its own leaf, the
  // last one keeps the other edges.
  void connect(std::size_t node) {
    const std::vector<std::size_t>& copies = copies_[node];
    for (std::size_t copy = 0; copy < copies.size(); ++copy) {
      const bool is_last = copy + 1 == copies.size();
      std::vector<std::size_t>& next = result_.nodes[copies[copy]].next;
      for (const std::size_t target : task_.nodes[node].next) {
        if (is_leaf(target) && copies.size() > 1) {
          next.push_back(copies_[target][copy]);
        } else if (is_leaf(target)) {
          next.insert(next.end(), copies_[target].begin(), copies_[target].end());
        } else if (is_last) {
          next.push_back(copies_[target].front());
        }
      }
      if (!is_last && is_layer(node)) next.push_back(copies[copy + 1]);
    }
  }

  const GraphTaskProgram& task_;
  std::uint32_t factor_;
  GraphTaskProgram result_;
  std::map<std::size_t, std::vector<std::size_t>> copies_;
};

}  // namespace

Scenario widen(const Scenario& scenario, std::uint32_t factor) {
  ZP_CHECK(factor >= 1, "a scenario is widened by at least 1");
  Scenario result = scenario;
  if (factor == 1) return result;
  for (ProtocolEngineSpec& engine : result.program.engines) {
    std::vector<std::string> params;
    for (const std::string& param : engine.params) {
      for (std::string& name : widened_names(param, factor)) params.push_back(std::move(name));
    }
    engine.params = std::move(params);
  }
  for (GraphTaskProgram& task : result.program.tasks) task = TaskWidener(task, factor).widen();
  return result;
}

}  // namespace zeroproof
