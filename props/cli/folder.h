#pragma once

#include <string>

#include "zeroproof/model/result.h"

namespace zeroproof {

// Makes the folder and those above it; fine when it exists.
Result<void> make_folder(const std::string& path);

}  // namespace zeroproof
