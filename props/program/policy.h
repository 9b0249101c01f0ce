#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/program/source.h"
#include "props/program/subject_grammar.h"

namespace zeroproof::program {

// What a case is about. Swarm testing: each case has a few of them, so that features which are
// seldom drawn together meet, and others are left out for once.
enum class Tag : std::uint8_t {
  plain,
  accumulation,
  blocks,
  loss_scaling,
  checkpoints,  // saved and loaded
  recompute,    // checkpoints of activations
  sharing,
  external,
  retained,
  nesting,
  exceptions,
  memory,  // a device without any left
  contexts,
  inspection,
  parameters,
  engines,
  experts,
  tiles,
  frames,
  worlds,
  configuration,
  transforms,
  misuse
};
inline constexpr int kTags = static_cast<int>(Tag::misuse) + 1;
const char* tag_name(Tag tag);

// How a case is drawn.
struct Policy {
  std::uint32_t tags = 0;  // bits
  bool is_plain = false;   // few productions, and otherwise plain training
  // Rows of the grammar. A plain case draws these productions alone, another one more often.
  std::vector<std::size_t> rows = {};
  bool is_manual = false;                   // .backward() where there is a choice
  bool inputs_need_grad = false;            // of every forward
  bool drops_losses = false;                // after their last backward
  bool inspects = false;                    // gradients and masters after each step
  std::uint32_t asides = 1;                 // how many there are, at most, in one place
  const SubjectGrammar* subject = nullptr;  // whom the program is for; null: who can do everything

  template <class Part>
  bool can_do(const Part& part) const {
    return subject == nullptr || !subject->capabilities.lack(part);
  }
  bool can_refuse(const Expectation& expectation) const {
    return subject == nullptr || subject->capabilities.can_refuse(expectation);
  }
  bool can_draw(std::size_t row) const { return subject == nullptr || subject->has(row); }
  bool has(Tag tag) const { return (tags >> static_cast<unsigned>(tag) & 1U) != 0; }
};

// Outlived by `subject`, which may be null.
Policy draw_policy(Source& source, const SubjectGrammar* subject);

}  // namespace zeroproof::program
