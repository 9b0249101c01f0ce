#pragma once

#include <cstddef>

namespace zeroproof::train {

// Every key of a configuration on its own, of each optimizer: another value of it is read, and
// changes nothing besides; "auto" is not given at all; and what is of another type is refused by an
// error that names the key. Of `parts` parts of the keys one, counted from 0.
bool holds_for_each_key(std::size_t part, std::size_t parts);

}  // namespace zeroproof::train
