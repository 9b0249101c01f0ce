#pragma once

#include <exception>
#include <string>
#include <vector>

namespace zeroproof::host {

// What the programs of ranks threw, and what follows from it for the others.

// what(), or that the type is unknown.
std::string text_of(const std::exception_ptr& error);
// It came from another rank's failure (GroupAborted).
bool is_abort(const std::exception_ptr& error);
// With what the groups of all are aborted when `rank` failed so.
std::string abort_reason(int rank, const std::exception_ptr& error);
// Rethrows what the lowest rank threw, an abort only if there is no other error; null for no error.
void rethrow_first(const std::vector<std::exception_ptr>& errors);

}  // namespace zeroproof::host
