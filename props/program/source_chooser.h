#pragma once

#include <cstddef>
#include <cstdint>

#include "props/program/source.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::program {

// The schedule of a case: its choices follow the program's in the same Source. It must be drawn
// only after the program is, as both append to one list. Refers to the source, which outlives it.
class SourceChooser final : public Chooser {
 public:
  explicit SourceChooser(Source& source) : source_(source) {}

  std::size_t choose(const ChoicePoint& at) override {
    return source_.below(static_cast<std::uint32_t>(at.options.size()));
  }

 private:
  Source& source_;
};

}  // namespace zeroproof::program
