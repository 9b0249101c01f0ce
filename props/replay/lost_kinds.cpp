#include "props/replay/lost_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace zeroproof {
namespace {

// `pattern` is a kind, or `word.*` for all kinds that begin with the word.
bool is_covered(std::string_view kind, std::string_view pattern) {
  if (!pattern.ends_with(".*")) return kind == pattern;
  const std::string_view word = pattern.substr(0, pattern.size() - 1);
  return kind.starts_with(word) || word == "*.";
}

struct Need {
  std::string_view kind;
  std::string_view properties;  // numbers, with a blank before and after each
};

// Every property of a trace reads engine.call, engine.return, gt.begin and gt.end.
constexpr std::array<Need, 17> kNeeds = {{
    {"bhs.call", " P4 P5 P8 P9 P14 P15 P16 P18 P79 "},
    {"bhs.return", " P4 P5 P8 P9 P14 P15 P16 P18 P79 "},
    {"bucket.add", " P44 P49 P51 P70 P79 "},
    {"bucket.flush", " P7 P11 P28 P29 P30 P42 P43 P44 P49 P52 P53 P79 P86 "},
    {"cb.queue", " P8 P17 "},
    {"cb.begin", " P8 P17 "},
    {"ckpt.recompute_begin", " P78 "},
    {"ckpt.recompute_end", " P78 "},
    {"coll.issue", " P45 "},
    {"module.fwd_post", " P62 P73 "},
    {"opt.zero_grad", " P7 P28 P29 P30 P41 P56 P60 "},
    {"zmod.fetch", " P62 P65 P68 P69 P70 P71 P73 P76 "},
    {"zmod.release", " P65 P78 "},
    {"zparam.gather_begin", " P62 P65 P66 P67 P69 P71 P72 P73 P76 P78 "},
    {"zparam.gather_end", " P62 P63 P65 P66 P72 P73 P76 P78 P81 "},
    {"zparam.partition", " P62 P63 P65 P66 P72 P73 P76 P78 P81 "},
    {"zparam.status", " P63 P64 P66 "},
}};

}  // namespace

std::string LostKinds::reason(const std::vector<std::string_view>& kinds) const {
  for (const NoteRecord& note : notes_)
    for (const std::string& pattern : note.lost)
      for (const std::string_view kind : kinds)
        if (is_covered(kind, pattern)) return fmt::format("not observed: {}", note.text);
  return {};
}

std::string LostKinds::reason(std::initializer_list<std::string_view> kinds) const {
  return reason(std::vector<std::string_view>(kinds));
}

std::vector<std::string_view> kinds_needed(std::string_view property) {
  std::vector<std::string_view> kinds = {"engine.call", "engine.return", "gt.begin", "gt.end"};
  const std::string word = fmt::format(" {} ", property);
  for (const Need& need : kNeeds)
    if (need.properties.find(word) != std::string_view::npos) kinds.push_back(need.kind);
  return kinds;
}

}  // namespace zeroproof
