#include "props/program/policy.h"

#include <array>

#include "props/program/grammar.h"

namespace zeroproof::program {
namespace {

constexpr std::array<const char*, kTags> kTagNames = {
    "plain",    "accumulation", "blocks",        "loss_scaling", "checkpoints", "recompute",
    "sharing",  "external",     "retained",      "nesting",      "exceptions",  "memory",
    "contexts", "inspection",   "parameters",    "engines",      "experts",     "tiles",
    "frames",   "worlds",       "configuration", "transforms",   "misuse"};

std::uint32_t bit(Tag tag) {
  return 1U << static_cast<unsigned>(tag);
}

// A row of the grammar, and what models and worlds it needs.
void draw_first_row(Source& source, Policy& policy) {
  std::vector<std::uint32_t> shares;
  for (std::size_t row = 0; row < grammar().size(); ++row)
    shares.push_back(policy.can_draw(row) ? grammar()[row].share : 0);
  const std::size_t row = source.weighted(shares);
  policy.rows.push_back(row);
  policy.tags |= grammar()[row].tags;
}

// What a program of the subject cannot be about.
std::uint32_t impossible_tags(const Capabilities& capabilities) {
  World frames;
  frames.skips_frames = true;
  std::uint32_t tags = 0;
  if (capabilities.lack(frames)) tags |= bit(Tag::frames);
  if (capabilities.engines() < 2) tags |= bit(Tag::engines);
  if (!capabilities.has_refusals()) tags |= bit(Tag::misuse);
  return tags;
}

// Beside which many others cannot stand.
bool is_exclusive(Tag tag) {
  return tag == Tag::frames || tag == Tag::engines;
}

// Many, so that they meet, or few, each of which has more room.
void draw_tags(Source& source, Policy& policy) {
  constexpr std::array<std::uint32_t, 4> kOnceIn = {2, 3, 5, 8};
  const std::uint32_t n = kOnceIn.at(source.below(4));
  for (int tag = 1; tag < kTags; ++tag)
    if (source.one_in(is_exclusive(static_cast<Tag>(tag)) ? 2 * n : n))
      policy.tags |= bit(static_cast<Tag>(tag));
}

}  // namespace

const char* tag_name(Tag tag) {
  return kTagNames.at(static_cast<std::size_t>(tag));
}

Policy draw_policy(Source& source, const SubjectGrammar* subject) {
  const Source::Scope scope(source, "policy");
  Policy policy;
  policy.subject = subject;
  constexpr std::array<std::uint32_t, 2> kPlainOrSwarm = {2, 3};
  policy.is_plain = source.weighted(kPlainOrSwarm) == 0;
  policy.tags = bit(Tag::plain);
  draw_first_row(source, policy);
  if (!policy.is_plain) draw_tags(source, policy);
  if (subject) policy.tags &= ~impossible_tags(subject->capabilities);
  policy.is_manual = source.one_in(3);
  policy.inputs_need_grad = source.one_in(3);
  policy.drops_losses = source.one_in(3);
  policy.inspects = source.one_in(3);
  policy.asides = static_cast<std::uint32_t>(source.between(1, 3));
  return policy;
}

}  // namespace zeroproof::program
