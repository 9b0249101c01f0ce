#pragma once

#include <vector>

#include "props/reference/world.h"

namespace zeroproof::reference {

// One parameter group of stages 1 and 2 as one flat tensor: docs/spec/zero/gradients.md 2.15.
class FlatLayout {
 public:
  FlatLayout(const World& world, int group, int ranks);

  std::int64_t elements() const { return elements_; }  // without padding
  std::int64_t padded() const { return padded_; }
  std::int64_t slice() const { return padded_ / ranks_; }
  // How many ranks own a part of the parameter; 0: it is of another group, or empty.
  std::int64_t owners(std::size_t parameter) const;

 private:
  struct Place {
    std::size_t parameter;
    std::int64_t begin;
    std::int64_t elements;
  };

  int ranks_;
  std::int64_t elements_ = 0;
  std::int64_t padded_ = 0;
  std::vector<Place> places_;
};

}  // namespace zeroproof::reference
