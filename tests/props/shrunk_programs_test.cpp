// The shrinker on drawn programs: what it makes of them makes sense, and is as simple as it gets.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>

#include "props/program/contract.h"
#include "props/program/draw.h"
#include "props/program/program_json.h"
#include "props/program/program_text.h"
#include "props/program/shrink.h"

namespace zeroproof::program {
namespace {

using Words = std::set<std::string>;

// A program fails where its text has all of the words.
StillFails has_words(const Words& words) {
  return [=](const std::vector<std::uint32_t>& values) -> std::optional<Choices> {
    Source source(values);
    const Program program = draw_program(source);
    const auto contract = Contract::of(program);
    if (!contract) throw std::logic_error(contract.error().text + "\n" + program_text(program));
    const std::string text = program_text(program, &*contract);
    for (const std::string& word : words)
      if (text.find(word) == std::string::npos) return std::nullopt;
    return source.choices();
  };
}

// Some words of the text, which may be rare.
Words words_of(const std::string& text, std::uint32_t salt) {
  constexpr const char* kWords[] = {
      "no_sync",    "refused", "retain_graph", "save(",   "load(", "stage 3",       "gathered",
      "Checkpoint", "freeze",  "zero_grad",    "Experts", "raise", "out_of_memory", "hook",
      "recreate",   "resume",  "Shared",       "scale(",  "bf16",  "set_grad",      "at_gradient",
      "Tied",       "spike",   "transform",    " + "};
  Words words;
  for (const char* const word : kWords) {
    salt = salt * 1664525 + 1013904223;
    if (salt >> 30U == 0 && text.find(word) != std::string::npos) words.insert(word);
  }
  return words;
}

RC_GTEST_PROP(ShrunkPrograms, Are_valid_and_as_simple_as_it_gets,
              (std::uint64_t seed, std::uint32_t salt)) {
  Source source(seed);
  const Program program = draw_program(source);
  const auto contract = Contract::of(program);
  RC_ASSERT(contract.has_value());
  const StillFails fails = has_words(words_of(program_text(program, &*contract), salt));
  const Shrunk once = shrink(source.choices(), fails, 100'000);
  RC_ASSERT(once.runs < 100'000U);
  const Shrunk twice = shrink(once.choices, fails, 100'000);
  RC_ASSERT(twice.choices.list == once.choices.list);
}

RC_GTEST_PROP(ShrunkPrograms, Are_the_same_program_as_a_document, (std::uint64_t seed)) {
  Source source(seed);
  const Program program = draw_program(source);
  const auto again = parse_program(program_json(program), "p.json");
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == program);
  RC_ASSERT(program_json(*again) == program_json(program));
}

}  // namespace
}  // namespace zeroproof::program
