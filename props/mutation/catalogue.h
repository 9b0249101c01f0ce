#pragma once

#include <span>
#include <string_view>

namespace zeroproof::mutation {

// One bug of the catalogue, as its table has it.
struct CatalogueRow {
  std::string_view id;    // "A01"
  std::string_view slug;  // "ds-reentrant-premature-epilogue"
  int tier = 1;
  int ranks = 0;                   // of the smallest configuration; 0: it does not say
  int parameters = 0;              // the same
  std::string_view invariants;     // "I1 I2"
  std::string_view configuration;  // the smallest one, in the words of the table
};

// All 180, in the order of their ids. Static.
std::span<const CatalogueRow> bug_catalogue();

// Null when no row has that id.
const CatalogueRow* find_row(std::string_view id);

}  // namespace zeroproof::mutation
