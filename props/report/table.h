#pragma once

#include <span>
#include <string>
#include <vector>

namespace zeroproof {

// Rows of cells as aligned columns, two blanks apart, each line indented by two and ended with
// '\n'. The last cell of a row is not padded; rows may differ in length.
std::string table_text(std::span<const std::vector<std::string>> rows);

}  // namespace zeroproof
