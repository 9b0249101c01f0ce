#include "props/report/picture/event_category.h"

namespace zeroproof {
namespace {

using Category = PictureCategory;

struct GroupCategory {
  std::string_view group;  // a kind, or what stands before its point
  Category category;
};

// The first row that fits.
constexpr GroupCategory kGroups[] = {
    {"module.bwd_pre", Category::hook},
    {"module.bwd_post", Category::hook},
    {"module", Category::forward},
    {"tensor", Category::hook},
    {"param", Category::hook},
    {"multi", Category::hook},
    {"node.exec", Category::node},
    {"node", Category::hook},
    {"gt", Category::graph_task},
    {"cb", Category::boundary},
    {"ckpt.recompute_begin", Category::recompute},
    {"ckpt.recompute_end", Category::recompute},
    {"ckpt", Category::forward},
    {"fn.backward_begin", Category::node},
    {"fn.backward_end", Category::node},
    {"fn", Category::forward},
    {"ft", Category::transform},
    {"autocast", Category::transform},
    {"zparam", Category::gather},
    {"zmod", Category::gather},
    {"bucket", Category::bucket},
    {"coll", Category::collective},
    {"bhs", Category::manager},
    {"opt", Category::step},
};

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Category method_category(std::string_view method) {
  if (holds(method, "forward") || method == "engine.scale") return Category::forward;
  if (holds(method, "grad_hook")) return Category::hook;
  if (holds(method, "prologue") || holds(method, "epilogue")) return Category::boundary;
  if (holds(method, "step") || holds(method, "zero_grad")) return Category::step;
  if (holds(method, "backward")) return Category::graph_task;
  if (holds(method, "reduc")) return Category::collective;
  if (method.starts_with("z3.") || method.starts_with("fallback.")) return Category::gather;
  return Category::other;
}

}  // namespace

PictureCategory picture_category(const HookEvent& event, const NameTable& names) {
  if (event.kind == EventKind::engine_call || event.kind == EventKind::engine_return) {
    return method_category(names.text(event.name));
  }
  if (event.is_recompute) return Category::recompute;
  const std::string_view kind = event_kind_name(event.kind);
  for (const GroupCategory& row : kGroups) {
    if (kind == row.group || kind.substr(0, kind.find('.')) == row.group) return row.category;
  }
  return Category::other;
}

std::string_view picture_category_name(PictureCategory category) {
  constexpr std::string_view kNames[kPictureCategories] = {
      "forward",   "graph task", "node",
      "recompute", "hook",       "prologue, epilogue",
      "bucket",    "collective", "gather, release",
      "manager",   "step",       "transform",
      "other"};
  return kNames[static_cast<std::size_t>(category)];
}

}  // namespace zeroproof
