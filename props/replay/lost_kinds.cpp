#include "props/replay/lost_kinds.h"

#include <array>

namespace zeroproof {
namespace {

struct Kind {
  std::string_view kind;
  std::string LostKinds::*reason;
};

constexpr std::array<Kind, 7> kKinds = {{{"coll.issue", &LostKinds::issues},
                                         {"coll.complete", &LostKinds::completions},
                                         {"param.post_acc", &LostKinds::hooks},
                                         {"opt.step", &LostKinds::steps},
                                         {"zparam.gather_begin", &LostKinds::parameters},
                                         {"zparam.partition", &LostKinds::parameters},
                                         {"bucket.flush", &LostKinds::parameters}}};

}  // namespace

bool is_lost_word_for(std::string_view word, std::string_view kind) {
  if (word == "*" || word == kind) return true;
  return word.ends_with(".*") && kind.starts_with(word.substr(0, word.size() - 1));
}

void add_lost_kinds(const NoteRecord& note, LostKinds& lost) {
  for (const std::string& word : note.lost)
    for (const Kind& one : kKinds)
      if (is_lost_word_for(word, one.kind) && (lost.*one.reason).empty())
        lost.*one.reason = note.text;
}

}  // namespace zeroproof
